"""The allocator a PyTorch job gets.

CachingSettings, limits -> CachingAllocator
"""

from __future__ import annotations

from estimator.allocators.caching import CachingAllocator
from estimator.allocators.expandable import ExpandableAllocator
from estimator.allocators.settings import CachingSettings


def pytorch_allocator(
    settings: CachingSettings,
    *,
    capacity: int | None = None,
    total: int | None = None,
    allowed: int | None = None,
) -> CachingAllocator:
    """Return a fresh allocator.

    *capacity* is what the driver can give to segments: usable memory less context, libraries
    and neighbours. *total* is the card's memory as CUDA reports it, of which
    `per_process_memory_fraction` is a share; *allowed* a cap in bytes the job sets itself.
    """
    caps = [] if allowed is None else [allowed]
    if settings.memory_fraction < 1.0 and total is not None:
        caps.append(int(settings.memory_fraction * total))
    kind = ExpandableAllocator if settings.expandable_segments else CachingAllocator
    return kind(settings, capacity=capacity, allowed=min(caps, default=None))
