"""The ledger of an allocator's dealings with the driver: what is written down.

    WatchedAllocator -> entries, pieces

Knows tensors and streams, never roles or places.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Dealing(StrEnum):
    """What happened between the allocator and the driver: two ways to take, four to give back."""

    SEGMENT = "segment"
    """A new segment was taken."""
    PAGES = "pages"
    """Pages of an expandable segment were mapped."""
    RETRY = "retry"
    """The driver had no more: everything cached that is whole went back, to ask again."""
    OVERSIZE = "oversize"
    """Cached blocks above `max_split_size_mb` went back, to ask again."""
    GARBAGE = "garbage"
    """Old cached segments went back (`garbage_collection_threshold`)."""
    EMPTY_CACHE = "empty-cache"
    """The job emptied the cache."""


class Cause(StrEnum):
    """Why nothing cached served a request. Of several that hold, the first in this order."""

    MAX_SPLIT = "max-split"
    """A free block of its pool was large enough, and `max_split_size_mb` forbade it."""
    WAITING = "waiting"
    """A dead block was large enough, and a second stream may still use it."""
    OTHER_STREAM = "other-stream"
    """A free block was large enough, and belongs to another stream or a graph's private pool."""
    OTHER_POOL = "other-pool"
    """A free block was large enough, and belongs to the pool of the other size class."""
    NOTHING_CACHED = "nothing-cached"
    """Its pool had no free block at all."""
    SCATTERED = "scattered"
    """The free blocks of its pool were enough together, and none of them alone."""
    TOO_SMALL = "too-small"
    """The free blocks of its pool were too small even together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A request that nothing cached served."""

    tensor: int
    nbytes: int
    """What was asked for, unrounded."""
    block: int
    """The block that makes."""
    cause: Cause
    largest: int
    """The largest free block of the request's pool, 0 if there is none."""
    cached: int
    """All free blocks of the request's pool together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One dealing. The three totals are those right after it, its own tensor included."""

    dealing: Dealing
    nbytes: int
    """Bytes taken, negative if given back."""
    miss: Miss | None
    """The request it was for; None if the job emptied its cache."""
    emptying: int
    """How many times the job had emptied its cache before."""
    segment: int | None
    """Number of the segment that was taken or grew."""
    is_small: bool
    stream: int
    reserved: int
    allocated: int
    requested: int
    """Bytes the live tensors asked for: `allocated` less what rounding and splitting lose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One block of one segment."""

    segment: int
    is_small: bool
    stream: int
    nbytes: int
    tensor: int | None
    """The live tensor in it; None if it is free or waits for a second stream."""
    is_free: bool
    requested: int = 0
    rounded: int = 0
    """*requested* as a block; what the block has beyond it could not be split off."""
