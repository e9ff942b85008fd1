"""The allocator a PyTorch job gets.

CachingSettings, limits -> CachingAllocator
"""

from __future__ import annotations

from dataclasses import dataclass

from estimator.allocators.caching import CachingAllocator
from estimator.allocators.expandable import ExpandableAllocator
from estimator.allocators.settings import CachingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PyTorchPolicy:
    """A PyTorch job's settings as an `AllocatorPolicy`."""

    settings: CachingSettings

    def allocator(
        self, *, capacity: int | None = None, allowed: int | None = None
    ) -> CachingAllocator:
        """Return a fresh allocator."""
        return pytorch_allocator(self.settings, capacity=capacity, allowed=allowed)

    def limit(self, usable: int, *, beside: int) -> int | None:  # noqa: ARG002
        """Return the job's fraction of the memory that CUDA reports, which is the usable part."""
        fraction = self.settings.memory_fraction
        return int(usable * fraction) if fraction < 1 else None

    def preallocated(self, usable: int, *, beside: int) -> int | None:  # noqa: ARG002
        """Return None: it grows."""
        return None


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
