"""What replay asks of an allocator, and an estimate of how a job has set it up.

    tensor id, bytes, stream -> allocated, reserved

An allocator knows sizes and streams, never roles, places or what a tensor is for.
"""

from __future__ import annotations

from typing import Protocol


class Allocator(Protocol):
    """Hands out blocks for tensors and counts what it holds."""

    allocated: int
    """Bytes of the blocks of live tensors, rounding included."""
    reserved: int
    """Bytes taken from the driver: live blocks, cached blocks and what is lost between them."""

    def allocate(self, tensor: int, nbytes: int, stream: int = 0) -> bool:
        """Give *tensor* a block on *stream*; False is out of memory after every retry.

        Streams from `trace.FIRST_PRIVATE_POOL` on are private pools.
        A tensor that was refused is not alive: it may be tried again with another size.
        A tensor of 0 bytes is alive and holds no block.
        """

    def free(self, tensor: int) -> None:
        """Take the block of *tensor* back; its bytes leave `allocated` at once."""

    def use(self, tensor: int) -> None:
        """Note that *tensor* is used on a second stream: its block is reusable late."""

    def synchronize(self) -> None:
        """The host has waited for the device: blocks that were in use elsewhere come back."""

    def empty_cache(self) -> None:
        """Return every wholly free segment to the driver, except those of private pools."""

    def release_pool(self, pool: int) -> None:
        """The last graph of a private *pool* is gone: its free segments may go back."""


class AllocatorPolicy(Protocol):
    """How a job has its framework's allocator set up: fresh allocators, and its own limits."""

    def allocator(self, *, capacity: int | None = None, allowed: int | None = None) -> Allocator:
        """Return a fresh allocator.

        *capacity* is what the driver can give to it: usable memory less context, libraries and
        neighbours. *allowed* is a cap in bytes the job sets itself.
        """
        ...

    def limit(self, usable: int, *, beside: int) -> int | None:
        """Return the most the job lets its allocator hold of *usable* bytes, None for all.

        *beside* is what the process holds beside its allocator.
        """
        ...

    def preallocated(self, usable: int, *, beside: int) -> int | None:
        """Return what the allocator takes of *usable* bytes at the start, None if it grows."""
        ...
