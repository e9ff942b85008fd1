"""What replay asks of an allocator.

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
