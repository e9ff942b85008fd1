"""Blocks, and the sorted lists of the free ones.

    address, bytes -> Block; Pool = free blocks of one stream and one size class

Segments lie at made-up addresses: what matters is their order, which is a modelled choice.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from estimator.trace import FIRST_PRIVATE_POOL

Entry = tuple[int, int, "Block"]
"""Size, address, block: the order of best fit. Addresses are unique, blocks never compared."""


class Pool:
    """Free blocks of one stream and one size class, best fit first."""

    __slots__ = ("entries", "is_aged", "is_private", "is_small", "least_rest", "stream")

    def __init__(self, *, is_small: bool, stream: int, least_rest: int) -> None:
        self.is_small = is_small
        self.stream = stream
        self.is_private = stream >= FIRST_PRIVATE_POOL
        """Of a CUDA graph: kept until the pool is released."""
        self.is_aged = not (is_small or self.is_private)
        """Its searches count as time and its old blocks can be garbage."""
        self.least_rest = least_rest
        """A found block is split if at least this much would be left over."""
        self.entries: list[Entry] = []

    def add(self, block: Block) -> None:
        """Put a free *block* in its place."""
        insort(self.entries, (block.size, block.address, block))

    def remove(self, block: Block) -> None:
        """Take *block*, whose size has not changed since `add`, out."""
        del self.entries[bisect_left(self.entries, (block.size, block.address))]


class Block:
    """A stretch of one segment: live, free, waiting for another stream, or unmapped."""

    __slots__ = ("address", "after", "age", "before", "is_free", "is_mapped", "pool", "size")

    def __init__(self, address: int, size: int, pool: Pool) -> None:
        self.address = address
        self.size = size
        self.pool = pool
        self.before: Block | None = None
        self.after: Block | None = None
        self.is_free = False
        """In its pool's list, or unmapped: may be merged with a neighbour of the same kind."""
        self.is_mapped = True
        """False only for the parts of expandable segments that hold no memory."""
        self.age = 0
        """The allocator's count of searches when the block became free (garbage collection)."""

    @property
    def is_whole(self) -> bool:
        """Return whether the block is a whole segment."""
        return self.before is None and self.after is None

    def split(self, size: int) -> Block:
        """Shorten the block to *size* bytes and return the rest, linked behind it."""
        rest = Block(self.address + size, self.size - size, self.pool)
        rest.is_mapped = self.is_mapped
        rest.before = self
        rest.after = after = self.after
        if after is not None:
            after.before = rest
        self.after = rest
        self.size = size
        return rest

    def absorb_after(self) -> None:
        """Grow over the block behind, which then no longer exists."""
        gone = self.after
        assert gone is not None
        self.size += gone.size
        self.after = after = gone.after
        if after is not None:
            after.before = self
