"""The cards a job may be tried on: those its PyTorch release has kernels for.

    framework version -> Devices, the least memory first

What a CUDA release builds for, first and last: CUDA 13.0 dropped Maxwell, Pascal and Volta, 12.0
Kepler, 11.0 cards below 3.5; 8.0 is new in 11.0, 9.0 in 11.8, 10.0 and 12.0 in 12.8 (CUDA Toolkit
release notes, sections on deprecated and new architectures of each release).
Not modelled: wheels that leave out an architecture of their CUDA.
"""

from __future__ import annotations

from estimator.catalog import all_gpus, resolve_device
from estimator.catalog.stacks import NEWEST, Version, stack_of
from estimator.device import ComputeCapability, Device
from estimator.units import GIB

_OLDEST: tuple[tuple[Version, ComputeCapability], ...] = (
    ((13, 0), (7, 5)),
    ((12, 0), (5, 0)),
    ((11, 0), (3, 5)),
    ((0, 0), (3, 0)),
)
"""From this CUDA on -> the oldest cards."""
_NEW: tuple[tuple[ComputeCapability, Version], ...] = (
    ((10, 0), (12, 8)),
    ((9, 0), (11, 8)),
    ((8, 0), (11, 0)),
)
"""From these cards on -> the oldest CUDA."""


def cards_by_memory(framework_version: str | None) -> tuple[Device, ...]:
    """Return the whole cards of the catalog that *framework_version* runs on.

    The least memory first, by whole GiB: an H100 that has a MiB less than an A100 is no cheaper.
    Among equals the older architecture first.
    """
    cuda = (stack_of(framework_version) or NEWEST).cuda
    devices = (resolve_device(gpu.name) for gpu in all_gpus())
    return tuple(
        sorted(
            (device for device in devices if runs_on(cuda, device.compute_capability)),
            key=lambda device: (
                round((device.total_bytes or 0) / GIB),
                device.compute_capability,
                device.name,
            ),
        )
    )


def runs_on(cuda: Version, compute: ComputeCapability) -> bool:
    """Return whether *cuda* builds for cards of *compute*."""
    oldest = next(cards for since, cards in _OLDEST if cuda >= since)
    since = next((needed for cards, needed in _NEW if compute >= cards), (0, 0))
    return compute >= oldest and cuda >= since
