"""The commands of a script as they are found.

Command, what a script shares with its functions
"""

from __future__ import annotations

from dataclasses import dataclass

from admission.detect.budget import Budget
from admission.detect.scope import Scope
from admission.detect.words import Variables, Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One simple command and what was set when it runs."""

    words: tuple[Word, ...]
    variables: Variables
    directory: str = ""
    is_sure: bool = True
    """It runs for certain, once what is before it succeeds."""


@dataclass(slots=True, kw_only=True)
class Run:
    """What a script shares with its functions and the text it evaluates."""

    scope: Scope
    budget: Budget
    commands: list[Command]
    written: list[str]
    functions: dict[str, str]
