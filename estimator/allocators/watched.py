"""PyTorch's caching allocator with a ledger of its dealings with the driver.

    Program -> replay -> WatchedAllocator -> entries, pieces

Hands out the same blocks as the allocator it watches, which `test_watched.py` holds it to. Each
entry says what was taken or given back, for which request, and why nothing cached would do.
Slower than what it watches: for accounts, never for the search under a cap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from estimator.allocators.blocks import Block, Pool
from estimator.allocators.caching import SEGMENT_GAP, CachingAllocator
from estimator.allocators.expandable import ExpandableAllocator
from estimator.allocators.ledger import Cause, Dealing, Entry, Miss, Piece
from estimator.allocators.rounding import block_size
from estimator.allocators.settings import CachingSettings


class WatchedAllocator(CachingAllocator):
    """The ledger of what goes back; the two below add how their kind takes."""

    def __init__(
        self,
        settings: CachingSettings | None = None,
        *,
        capacity: int | None = None,
        allowed: int | None = None,
    ) -> None:
        super().__init__(settings, capacity=capacity, allowed=allowed)
        self.entries: list[Entry] = []
        self.requested = 0
        self._requests: dict[int, int] = {}
        self._asked: tuple[int, int] | None = None
        self._miss: Miss | None = None
        self._num_emptied = 0

    def allocate(self, tensor: int, nbytes: int, stream: int = 0) -> bool:
        """Allocate as watched; the last entry's totals are those with the tensor in its block."""
        num_before = len(self.entries)
        self._asked = (tensor, nbytes)
        is_done = super().allocate(tensor, nbytes, stream)
        self._asked = self._miss = None
        if is_done:
            self._requests[tensor] = max(0, nbytes)
            self.requested += max(0, nbytes)
            if len(self.entries) > num_before:
                last = self.entries[-1]
                self.entries[-1] = replace(last, allocated=self.allocated, requested=self.requested)
        return is_done

    def free(self, tensor: int) -> None:
        """Free as watched."""
        super().free(tensor)
        self.requested -= self._requests.pop(tensor)

    def empty_cache(self) -> None:
        """Empty as watched: for a request that finds no memory, or because the job asks."""
        before = self.reserved
        super().empty_cache()
        self._note_back(Dealing.RETRY if self._miss else Dealing.EMPTY_CACHE, before)
        if self._miss is None:
            self._num_emptied += 1

    def pieces(self) -> Iterator[Piece]:
        """Yield every mapped block by segment, with what is in it."""
        tensors = {block.address: tensor for tensor, block in self._live.items() if block}
        for head in self._heads.values():
            block: Block | None = head
            while block is not None:
                if block.is_mapped:
                    yield self._piece(block, tensors)
                block = block.after

    def _piece(self, block: Block, tensors: Mapping[int, int]) -> Piece:
        tensor = tensors.get(block.address)
        requested = 0 if tensor is None else self._requests[tensor]
        divisions = self.settings.roundup_divisions
        return Piece(
            segment=_segment(block),
            is_small=block.pool.is_small,
            stream=block.pool.stream,
            nbytes=block.size,
            tensor=tensor,
            is_free=block.is_free,
            requested=requested,
            rounded=0 if tensor is None else block_size(requested, divisions),
        )

    def _new_block(self, pool: Pool, size: int) -> Block | None:
        """Note what was cached before the driver is asked."""
        assert self._asked is not None
        tensor, nbytes = self._asked
        self._miss = Miss(
            tensor=tensor,
            nbytes=nbytes,
            block=size,
            cause=self._cause(pool, size),
            largest=_largest(pool),
            cached=sum(entry[0] for entry in pool.entries),
        )
        return super()._new_block(pool, size)

    def _cause(self, pool: Pool, size: int) -> Cause:
        """Return why nothing cached serves a block of *size* in *pool*."""
        same, other = self._small, self._large
        if not pool.is_small:
            same, other = other, same
        elsewhere = other.get(pool.stream)
        if _largest(pool) >= size:
            return Cause.MAX_SPLIT
        if any(block.pool is pool and block.size >= size for block in self._waiting):
            return Cause.WAITING
        if any(_largest(each) >= size for each in same.values()):
            return Cause.OTHER_STREAM
        if elsewhere is not None and _largest(elsewhere) >= size:
            return Cause.OTHER_POOL
        if not pool.entries:
            return Cause.NOTHING_CACHED
        together = sum(entry[0] for entry in pool.entries)
        return Cause.SCATTERED if together >= size else Cause.TOO_SMALL

    def _release_oversize(self, pool: Pool, size: int) -> bool:
        before = self.reserved
        is_enough = super()._release_oversize(pool, size)
        self._note_back(Dealing.OVERSIZE, before)
        return is_enough

    def _collect_garbage(self) -> None:
        before = self.reserved
        super()._collect_garbage()
        self._note_back(Dealing.GARBAGE, before)

    def _note_back(self, dealing: Dealing, before: int) -> None:
        """Write down what went back, if anything did."""
        if self.reserved < before:
            self._note(dealing, before)

    def _note(
        self,
        dealing: Dealing,
        before: int,
        *,
        pool: Pool | None = None,
        segment: int | None = None,
    ) -> None:
        entry = Entry(
            dealing=dealing,
            nbytes=self.reserved - before,
            miss=self._miss,
            emptying=self._num_emptied,
            segment=segment,
            is_small=pool is not None and pool.is_small,
            stream=0 if pool is None else pool.stream,
            reserved=self.reserved,
            allocated=self.allocated,
            requested=self.requested,
        )
        self.entries.append(entry)


class WatchedCachingAllocator(WatchedAllocator):
    """The allocator with `cudaMalloc` segments."""

    def _grow(self, pool: Pool, size: int) -> Block | None:
        before = self.reserved
        block = super()._grow(pool, size)
        if block is not None:
            self._note(Dealing.SEGMENT, before, pool=pool, segment=_segment(block))
        return block


class WatchedExpandableAllocator(WatchedAllocator, ExpandableAllocator):
    """The allocator whose segments grow and shrink by pages: an entry for each stretch of them.

    What was mapped before the driver had no more is in the ledger too.
    """

    def _map(self, pool: Pool, block: Block, size: int) -> Block | None:
        before, segment = self.reserved, _segment(block)
        grown = super()._map(pool, block, size)
        if grown is not None:
            self._note(Dealing.PAGES, before, pool=pool, segment=segment)
        return grown


def watched_allocator(
    settings: CachingSettings, *, capacity: int | None = None, allowed: int | None = None
) -> WatchedAllocator:
    """Return a fresh allocator of *settings* that keeps a ledger (see `pytorch_allocator`)."""
    is_expandable = settings.expandable_segments
    kind = WatchedExpandableAllocator if is_expandable else WatchedCachingAllocator
    return kind(settings, capacity=capacity, allowed=allowed)


def _largest(pool: Pool) -> int:
    return pool.entries[-1][0] if pool.entries else 0


def _segment(block: Block) -> int:
    """Return the number of the segment *block* lies in: they lie apart by `SEGMENT_GAP`."""
    return block.address // SEGMENT_GAP
