"""One measured figure beside the one asked for, and the machine it was measured on."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

PLAIN_WIDTH = 200
LIBRARIES = ("torch", "torchvision", "timm", "transformers", "aiohttp", "pydantic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measurement: what, how much, in what unit, and the bound it is held against."""

    name: str
    value: float
    unit: str
    low: float = 0.0
    high: float
    note: str = ""
    """What the value is over, where that is not in the name."""

    @property
    def holds(self) -> bool:
        """Return whether the value is within its bounds. One that is not known is not."""
        return self.low <= self.value <= self.high

    @property
    def asked(self) -> str:
        """Return the bounds as text."""
        if math.isinf(self.high):
            return f"at least {self.low:g} {self.unit}".strip()
        if self.high == 0:
            return "none"
        low = f"{self.low:g} to " if self.low else "up to "
        return f"{low}{self.high:g} {self.unit}".strip()

    @property
    def measured(self) -> str:
        """Return the value as text."""
        if math.isnan(self.value):
            return "not known"
        digits = 0 if self.unit == "" else 2
        return f"{self.value:,.{digits}f} {self.unit}".strip()


def console() -> Console:
    """Return where figures are printed, wide enough for a line each if it is a file."""
    screen = Console(highlight=False)
    return screen if screen.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def figure_table(figures: Iterable[Figure]) -> Table:
    """Return *figures* beside what is asked, for the screen."""
    table = Table("figure", "over", "measured", "asked", "holds")
    for figure in figures:
        holds = "yes" if figure.holds else "NO"
        words = (figure.name, figure.note, figure.measured, figure.asked, holds)
        table.add_row(*(escape(word) for word in words))
    return table


def machine() -> str:
    """Return the machine's name and `hardware` in one line."""
    return f"{platform.node()}: {hardware()}"


def hardware() -> str:
    """Return the processor, cores and library versions in one line."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    cores = len(os.sched_getaffinity(0))
    processor = names[0] if names else platform.machine()
    python = platform.python_version()
    return f"{processor}, {cores} cores, Python {python}, {libraries}"


def resident_mib(pid: int) -> float:
    """Return the resident memory of process *pid* in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(pid)


def used_seconds(pid: int) -> float:
    """Return the processor time that process *pid* has taken so far, in steps of 10 ms.

    Without its children. Says the same whatever else the machine does, as a wait does not.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
