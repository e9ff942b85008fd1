"""How one kind of object is read.

object, documents -> Pods
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from admission.codes import ReasonCode
from admission.values import Documents, Finding, Json
from admission.workloads.units import Template


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """The pods that an object leads to."""

    templates: tuple[Template, ...] = ()
    launcher: str = ""
    """The role whose program also runs in the pods of roles that have no command of their own."""
    framework: str = ""
    framework_source: str = ""
    """What says so. Empty: the kind itself."""
    skip: ReasonCode | None = None
    """Why none of them is judged."""
    wanted: tuple[str, ...] = ()
    problems: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How one kind is read."""

    read: Callable[[Json, Documents], Pods]
    has_started: Callable[[Json], bool]
    observe_only: bool = False
    """Interactive or serving: counted, never warned about or denied."""
    explain_only: bool = False
    """Others start jobs from it: `vramgate explain` alone judges it."""


Kinds = Mapping[tuple[str, str], Kind]
"""(API group, kind) -> how it is read."""
