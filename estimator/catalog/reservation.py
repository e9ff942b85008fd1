"""What the driver keeps of a card for itself.

    total, compute capability, driver -> bytes

Three views of a card differ by it:

* total: NVML counts it in since driver 510; older drivers leave it out (T4: 15,360 MiB with 535,
  15,109 with an older one, 15,104-15,114 visible);
* used, by version 1 of `nvmlDeviceGetMemoryInfo` (pynvml unless asked for version 2, old gpustat):
  counted in since driver 510, so that an idle card shows 308-912 MiB (wookayin/gpustat#141, #168;
  rust-nvml/nvml-wrapper#57: an A100 912, then 7.8 with version 2);
* used, by version 2 (nvidia-smi) and of a process: never in.

Not modelled: the share that grows with ECC and with the number of channels, which differs by card;
the catalog has those that are known.
"""

from __future__ import annotations

from estimator.catalog.gpu import Gpu
from estimator.catalog.stacks import Version
from estimator.device import ComputeCapability
from estimator.units import MIB

COUNTS_RESERVATION = 510
"""First driver branch whose NVML total has the reservation in it (January 2022)."""
COUNTS_SINCE: Version = (11, 6)
"""CUDA version that driver 510 came with."""
UNCOUNTED = 12 * MIB
"""Total less visible where the driver leaves the reservation out: at most 12 MiB on a V100."""
PASCAL = 108 * MIB
"""Largest figure before Volta: P100, 16,384 less 16,276 MiB."""
BASE, SHARE, MOST = 256 * MIB, 128, 896 * MIB
"""256 MiB and a 128th. Known: 8 GB 215-256, 24 GB 316-541, 48 GB 464-652, 80 GB 550-870."""


def assumed_reservation(
    total: int, *, compute_capability: ComputeCapability, driver: str | None = None
) -> int:
    """Return the reservation in bytes of a card of *total* bytes that the catalog does not know."""
    if counts_reservation(driver) is False or compute_capability < (5, 0):
        return UNCOUNTED
    if compute_capability < (7, 0):
        return PASCAL
    return min(BASE - -total // SHARE, MOST)


def node_reservation(gpu: Gpu, *, total_mib: int, driver: str | None = None) -> int:
    """Return the reservation in bytes of a recognised card whose node reports *total_mib*.

    A total a little below the catalog's comes from a driver that leaves the reservation out,
    unless *driver* says otherwise: what is visible stays the same. A much lower one is another
    card of that name, or ECC. Source: V100 16,160 and 16,384 MiB, both with 16,148 visible.
    """
    known = gpu.reservation_mib * MIB
    if total_mib == gpu.total_mib:
        return known
    is_near = gpu.usable_mib * 98 // 100 <= total_mib < gpu.total_mib
    if is_near and not counts_reservation(driver):
        return max(0, total_mib - gpu.usable_mib) * MIB
    rule = assumed_reservation(
        total_mib * MIB, compute_capability=gpu.compute_capability, driver=driver
    )
    return min(known, rule, total_mib * MIB)


def counts_reservation(driver: str | None, *, cuda: Version | None = None) -> bool | None:
    """Return whether *driver* reports totals with the reservation in them, None if not known.

    Where no driver is named, software of CUDA before 11.6 is taken to run on one of its time, and
    later software on a newer one (assumed: a driver may be newer than the software, not older).
    """
    major = (driver or "").partition(".")[0]
    if major.isdecimal():
        return int(major) >= COUNTS_RESERVATION
    return None if cuda is None else cuda >= COUNTS_SINCE
