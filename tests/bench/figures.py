"""One measured figure beside the one asked for, and the machine it was measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

LIBRARIES = ("torch", "torchvision", "timm", "transformers", "aiohttp", "pydantic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measurement: what, how much, in what unit, and the bound it is held against."""

    name: str
    value: float
    unit: str
    low: float = 0.0
    high: float

    @property
    def holds(self) -> bool:
        """Return whether the value is within its bounds."""
        return self.low <= self.value <= self.high


def machine() -> str:
    """Return the processor, cores, kernel and library versions in one line."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    cores = len(os.sched_getaffinity(0))
    processor = names[0] if names else platform.machine()
    python = platform.python_version()
    return f"{platform.node()}: {processor}, {cores} cores, Python {python}, {libraries}"


def resident_mib(pid: int) -> float:
    """Return the resident memory of process *pid* in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(pid)
