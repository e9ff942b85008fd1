"""What `vramgate gpus` shows, as plain data.

    catalog -> rows

Renders nothing: text, JSON and HTML are the command's.
"""

from __future__ import annotations

from dataclasses import dataclass

from estimator.catalog.gpu import Gpu
from estimator.catalog.gpus import all_gpus
from estimator.units import MIB, gib_down


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRow:
    """One card, its sizes in bytes and as text in GiB, rounded down."""

    name: str
    product: str
    architecture: str
    compute_capability: str
    total_bytes: int
    total: str
    usable_bytes: int
    usable: str
    mig_profiles: tuple[str, ...]
    source: str
    """Of the total, then of the reservation."""
    is_assumed: bool


def gpu_rows() -> tuple[GpuRow, ...]:
    """Return one row a card, in the order of the catalog."""
    return tuple(_row(gpu) for gpu in all_gpus())


def _row(gpu: Gpu) -> GpuRow:
    major, minor = gpu.compute_capability
    usable = gpu.usable_mib * MIB
    return GpuRow(
        name=gpu.name,
        product=gpu.product,
        architecture=gpu.architecture,
        compute_capability=f"{major}.{minor}",
        total_bytes=gpu.total_bytes,
        total=gib_down(gpu.total_bytes),
        usable_bytes=usable,
        usable=gib_down(usable),
        mig_profiles=tuple(profile.name for profile in gpu.mig),
        source=f"total {gpu.total_source}; reservation {gpu.reservation_source}",
        is_assumed=gpu.is_assumed,
    )
