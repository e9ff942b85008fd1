"""One card of the catalog, with where each figure comes from.

    gpus.yaml -> Gpu

Figures are whole MiB, as NVML and node labels print them; bytes begin at `Device`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from estimator.device import ComputeCapability
from estimator.units import MIB


class Origin(StrEnum):
    """How far a figure can be trusted."""

    PUBLISHED = "published"
    """Someone printed this very figure."""
    DERIVED = "derived"
    """Arithmetic on a published figure or on the nominal size."""
    ASSUMED = "assumed"
    """A rule of ours, or a figure nobody read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a figure comes from."""

    origin: Origin
    text: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfile:
    """A slice of a card: its memory is all for the process, the driver's share is off already."""

    name: str
    memory_mib: int
    multiprocessors: int
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A card: `total_mib` is the NVML total, `reservation_mib` what the driver keeps of it."""

    name: str
    product: str
    """The label GPU feature discovery writes for it today."""
    labels: tuple[str, ...]
    """Further spellings of the label. Prefix `NVIDIA-`, case and spaces need none (products.py)."""
    architecture: str
    compute_capability: ComputeCapability
    multiprocessors: int
    total_mib: int
    total_source: Source
    reservation_mib: int
    reservation_source: Source
    mig: tuple[MigProfile, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Return the NVML total."""
        return self.total_mib * MIB

    @property
    def usable_mib(self) -> int:
        """Return what one process can get of the whole card."""
        return self.total_mib - self.reservation_mib

    @property
    def is_assumed(self) -> bool:
        """Return whether a figure of the whole card rests on an assumption."""
        return Origin.ASSUMED in (self.total_source.origin, self.reservation_source.origin)

    def profile(self, name: str) -> MigProfile | None:
        """Return the MIG profile called *name*; media and graphics variants are the plain one."""
        plain = plain_profile(name)
        return next((profile for profile in self.mig if profile.name == plain), None)


def plain_profile(name: str) -> str:
    """Return a profile without its variant: `1g.10gb+me`, `1g.10gb.me` and `1g.24gb-me` too.

    A compute instance (`2c.7g.80gb`) shares the memory of its GPU instance, so the `2c.` goes.
    """
    head, found, tail = name.casefold().partition("gb")
    compute, separator, rest = head.partition("c.")
    if separator and compute.isdigit():
        head = rest
    return head + found if not tail or tail[0] in "+-." else name.casefold()
