"""The settings about which objects are read.

YAML -> WorkloadSettings (frozen)
"""

from __future__ import annotations

from pydantic import Field, field_validator

from admission.section import Section
from estimator.spec import Framework

_PATH = r"^[A-Za-z]\w*(\[\*\])?(\.[A-Za-z]\w*(\[\*\])?)*$"
"""Names joined by dots; `[*]` behind one stands for each item of a list or a mapping."""


class KindTemplate(Section):
    """Where the pods of one role of a kind are described."""

    path: str = Field(pattern=_PATH, max_length=200)
    """Field path of the pod template: `spec.template`, `spec.roles[*].template`."""

    role: str = Field(default="", max_length=63)
    """What the role is called. Absent: the name of what `[*]` stands for, or `main`."""

    replicas_path: str | None = Field(default=None, pattern=_PATH, max_length=200)
    """Field path of the number of pods: `[*]` stands for the same as in `path`. Absent: one."""


class KindSettings(Section):
    """A kind of object that runs pods and that Vramgate does not know by itself."""

    group: str = Field(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    """API group: `example.com`."""

    kind: str = Field(max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")
    """As `kind:` in its manifests."""

    templates: tuple[KindTemplate, ...] = Field(max_length=16)
    """Where its pod templates stand: at least one."""

    framework: Framework | None = None
    """What its jobs are written in, where nothing in them says otherwise."""

    observe_only: bool = False
    """Interactive or serving: counted, never warned about or denied."""

    @field_validator("templates")
    @classmethod
    def _some(cls, value: tuple[KindTemplate, ...]) -> tuple[KindTemplate, ...]:
        if not value:
            raise ValueError("at least one place of pod templates is needed")
        return value


class WorkloadSettings(Section):
    """Which objects are read."""

    kinds: tuple[KindSettings, ...] = Field(default=(), max_length=64)
    """Kinds beyond those that are built in. The webhook's rules must name them too."""
