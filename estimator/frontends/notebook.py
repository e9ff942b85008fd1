"""What a trace takes for granted and does not know, collected while it is made.

findings -> assumptions, unknowns, warnings
"""

from __future__ import annotations

from estimator.notes import Assumption, AssumptionCode, Unknown, UnknownCode
from estimator.trace import TraceBuilder


class Notebook:
    """Collects notes; each is kept once."""

    def __init__(self) -> None:
        self.assumptions: list[Assumption] = []
        self.unknowns: list[Unknown] = []
        self.warnings: list[str] = []

    def assume(self, code: AssumptionCode, path: str, value: object, reason: str) -> None:
        """Note a value that the spec does not state."""
        note = Assumption(code=code, path=path, value=str(value), reason=reason)
        if note not in self.assumptions:
            self.assumptions.append(note)

    def unknown(self, code: UnknownCode, path: str, reason: str) -> None:
        """Note something that moves the figure and is not modelled."""
        note = Unknown(code=code, path=path, reason=reason)
        if note not in self.unknowns:
            self.unknowns.append(note)

    def warn(self, text: str) -> None:
        """Note what a person should look at."""
        if text not in self.warnings:
            self.warnings.append(text)

    def write(self, builder: TraceBuilder) -> None:
        """Hand everything to *builder*."""
        builder.assumptions.extend(self.assumptions)
        builder.unknowns.extend(self.unknowns)
        builder.warnings.extend(self.warnings)
