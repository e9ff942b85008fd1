"""What came of fuzzing one target, and the table of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One input that broke something."""

    target: str
    input: str
    """The file in `tests/fuzz/found/TARGET`."""

    place: str
    """The kind of it and where; findings of one place are one."""

    text: str
    """The traceback, or what was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One target after its inputs."""

    target: str
    seed: int
    """Where the mutations began."""

    num_inputs: int
    num_asked: int
    coverage: int
    """Edges of our code that were reached, as libFuzzer counts them."""

    slowest_seconds: float
    mebibytes: int
    """How much the process grew by, at most."""

    peak_mebibytes: int
    """The most memory that the process held, with our code and its instruments."""

    wall_seconds: float
    """From the start of the first process to the end of the last, imports included."""

    findings: tuple[Finding, ...]
    trouble: str = ""
    """Why the child ended early, where no input is to blame."""

    @property
    def is_whole(self) -> bool:
        """Return whether all inputs were tried."""
        return self.num_inputs >= self.num_asked

    @property
    def rate(self) -> float:
        """Return inputs a second."""
        return self.num_inputs / self.wall_seconds if self.wall_seconds else 0.0

    @property
    def line(self) -> str:
        """Return the outcome in a line."""
        return (
            f"{self.num_inputs} inputs in {self.wall_seconds:.0f} s, coverage {self.coverage}, "
            f"slowest {self.slowest_seconds * 1000:.0f} ms, memory +{self.mebibytes} MiB, "
            f"{len(self.findings)} findings{self.trouble and f'; {self.trouble}'}"
        )


def outcome_table(outcomes: Sequence[Outcome]) -> Table:
    """Return one row a target."""
    names = ("target", "seed", "inputs", "a second", "coverage", "slowest", "memory", "findings")
    table = Table(*names, box=None)
    for outcome in outcomes:
        table.add_row(
            outcome.target,
            str(outcome.seed),
            f"{outcome.num_inputs:,}",
            f"{outcome.rate:,.0f}",
            f"{outcome.coverage:,}",
            f"{outcome.slowest_seconds * 1000:.0f} ms",
            f"{outcome.peak_mebibytes} MiB (+{outcome.mebibytes})",
            str(len(outcome.findings)) + ("" if outcome.is_whole else " (cut short)"),
        )
    return table
