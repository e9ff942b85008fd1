"""The allocator that wastes nothing: a sum of live bytes.

    tensor id, bytes -> allocated = reserved

A floor for every other model, and what "live bytes" means in tests and baselines.
Not modelled: rounding, segments, streams, private pools.
"""

from __future__ import annotations


class ExactAllocator:
    """Counts live bytes, refuses what would exceed *capacity*."""

    def __init__(self, *, capacity: int | None = None) -> None:
        self.allocated = 0
        self.reserved = 0
        self._capacity = capacity
        self._live: dict[int, int] = {}

    def allocate(self, tensor: int, nbytes: int, stream: int = 0) -> bool:  # noqa: ARG002
        """Count *nbytes* for *tensor*, or return False if they do not fit.

        *stream* is there for the protocol: streams are not modelled.
        """
        total = self.allocated + nbytes
        if self._capacity is not None and total > self._capacity:
            return False
        self._live[tensor] = nbytes
        self.allocated = self.reserved = total
        return True

    def free(self, tensor: int) -> None:
        """Stop counting *tensor*."""
        self.allocated -= self._live.pop(tensor)
        self.reserved = self.allocated

    def use(self, tensor: int) -> None:
        """Do nothing: streams are not modelled."""

    def synchronize(self) -> None:
        """Do nothing: streams are not modelled."""

    def empty_cache(self) -> None:
        """Do nothing: nothing is cached."""

    def release_pool(self, pool: int) -> None:
        """Do nothing: pools are not modelled."""
