"""PyTorch's caching allocator, byte for byte.

    tensor id, bytes, stream -> allocated, reserved

Rounds to 512 bytes, keeps a small and a large pool for each stream, takes the best fit by size
and then address, splits it, merges on free, and asks the driver for a segment only if nothing
cached fits. Short of memory it does what PyTorch does, in PyTorch's order (`_new_block`).

Streams from `FIRST_PRIVATE_POOL` on are private pools, one stream each: what a CUDA graph took
while it was captured stays with it until `release_pool`. Segments get rising made-up addresses:
ties between blocks of equal size are decided by the age of the segment, a modelled choice.

Not modelled: memory freed by registered callbacks; a `MemPool` with `use_on_oom` or `no_split`,
and that a pool which is not captured may empty the cache in newer versions (2.15 does).

Source: pytorch/pytorch@001074d25084fdb87a799823e395a50f5ec044d3 c10/cuda/CUDACachingAllocator.cpp,
compared with DustyL/pytorch@023bca658e631f9d3c25f94844aae4535e724ec1 (torch 2.10 or later).
`test_against_pytorch.py` runs the allocator of torch 2.15.0 itself beside this one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from estimator.allocators.blocks import Block, Pool
from estimator.allocators.garbage import garbage
from estimator.allocators.rounding import BLOCK, SMALL_REQUEST, block_size, segment_size
from estimator.allocators.settings import CachingSettings
from estimator.allocators.steady import Steady
from estimator.allocators.waiting import WaitingBlocks

SEGMENT_GAP = 1 << 64
"""Distance of made-up segment addresses: more than any segment holds, as sizes have 63 bits."""


class CachingAllocator(Steady):
    """The allocator with `cudaMalloc` segments.

    *capacity* is what the driver can give to segments, *allowed* what the process may take
    (`set_per_process_memory_fraction`). None: no limit.
    """

    def __init__(
        self,
        settings: CachingSettings | None = None,
        *,
        capacity: int | None = None,
        allowed: int | None = None,
    ) -> None:
        super().__init__()
        self.settings = settings or CachingSettings()
        self.capacity = capacity
        self.allowed = allowed
        self.allocated = 0
        self.num_retries = 0
        """Requests that made the allocator give all its cached segments back."""
        limits = [limit for limit in (capacity, allowed) if limit is not None]
        self._limit = min(limits, default=None)
        self._collects = allowed is not None and self.settings.garbage_collection_threshold > 0
        self._num_searches = 0
        self._small: dict[int, Pool] = {}
        self._large: dict[int, Pool] = {}
        self._live: dict[int, Block | None] = {}
        self._heads: dict[int, Block] = {}
        self._next_address = SEGMENT_GAP
        self._used_elsewhere: set[int] = set()
        self._waiting = WaitingBlocks()
        self._released: set[int] = set()

    def allocate(self, tensor: int, nbytes: int, stream: int = 0) -> bool:
        """Give *tensor* the best cached block or a new segment; False is out of memory.

        Source: `malloc`, `get_free_block`, `alloc_found_block`. This is the hot path: the
        search, the split and the insertion are written out.
        """
        if nbytes <= 0:
            self._live[tensor] = None
            return True
        divisions = self.settings.roundup_divisions
        size = -(-nbytes // BLOCK) * BLOCK if divisions is None else block_size(nbytes, divisions)
        pools = self._small if size <= SMALL_REQUEST else self._large
        pool = pools.get(stream)
        if pool is None:
            pool = self._open_pool(stream, is_small=size <= SMALL_REQUEST)
        block = self._take(pool, size)
        if block is None:
            block = self._new_block(pool, size)
            if block is None:
                return False
        if block.size - size >= pool.least_rest and (
            self.settings.max_split_size is None or self._may_split(size)
        ):
            rest = block.split(size)
            rest.is_free = True
            rest.age = self._num_searches
            insort(pool.entries, (rest.size, rest.address, rest))
        block.is_free = False
        self._live[tensor] = block
        self.allocated += block.size
        return True

    def free(self, tensor: int) -> None:
        """Take the block of *tensor* back, or let it wait if a second stream uses it."""
        block = self._live.pop(tensor)
        if block is None:
            return
        self.allocated -= block.size
        if tensor in self._used_elsewhere:
            self._used_elsewhere.discard(tensor)
            back = self._waiting.put(block)
            if back is not None:
                self._give_back(back)
        else:
            self._give_back(block)

    def use(self, tensor: int) -> None:
        """Note that *tensor* is used on a second stream: after `free` its block waits.

        It comes back when enough newer blocks wait too (`waiting.py`), when the host
        synchronises, when the cache is emptied, or when memory is short.
        """
        self._used_elsewhere.add(tensor)

    def synchronize(self) -> None:
        """Take back every block that waits for a second stream."""
        for block in self._waiting.drain():
            self._give_back(block)

    def empty_cache(self) -> None:
        """Return every wholly free segment to the driver, but keep living private pools.

        Source: `release_cached_blocks`.
        """
        self.synchronize()
        for pools in (self._large, self._small):
            for pool in pools.values():
                if not pool.is_private or pool.stream in self._released:
                    self._release_pool(pool)

    def release_pool(self, pool: int) -> None:
        """Let the free segments of a private *pool* go back when the cache is emptied next.

        Source: `releasePool`, when the last graph that used the pool is gone.
        """
        self._released.add(pool)

    def blocks(self) -> Iterator[tuple[int, int, bool]]:
        """Yield address, size and whether it is free of every mapped block, by segment."""
        for head in self._heads.values():
            block: Block | None = head
            while block is not None:
                if block.is_mapped:
                    yield block.address, block.size, block.is_free
                block = block.after

    def _open_pool(self, stream: int, *, is_small: bool) -> Pool:
        """Return the new pool of a stream.

        A rest of less than 512 bytes (small) or up to 1 MiB (large) stays with its block.
        Source: `should_split`.
        """
        least = BLOCK if is_small or self.settings.expandable_segments else SMALL_REQUEST + 1
        pool = Pool(is_small=is_small, stream=stream, least_rest=least)
        (self._small if is_small else self._large)[stream] = pool
        return pool

    def _may_split(self, size: int) -> bool:
        limit = self.settings.max_split_size
        return limit is None or size < limit or size <= SMALL_REQUEST

    def _take(self, pool: Pool, size: int) -> Block | None:
        """Return the best free block for *size*, out of its pool. Source: `get_free_block`."""
        if self._collects and pool.is_aged:
            self._num_searches += 1
        entries = pool.entries
        index = bisect_left(entries, (size,))
        if index == len(entries):
            return None
        block = entries[index][2]
        if self.settings.max_split_size is not None and not self._fits_limits(block.size, size):
            return None
        del entries[index]
        return block

    def _fits_limits(self, found: int, size: int) -> bool:
        """Return whether a block of *found* bytes may serve *size* under `max_split_size_mb`."""
        limit = self.settings.max_split_size
        if limit is None:
            return True
        if size < limit:
            return found < limit
        return found < size + self.settings.max_non_split_rounding

    def _new_block(self, pool: Pool, size: int) -> Block | None:
        """Return a block from the driver, giving cached memory back if it must.

        In order: collect garbage if asked to; ask the driver; free cached oversize blocks and
        ask again; free every wholly free segment and ask again. None: out of memory.
        A capture asks once, because `cudaFree` would break it (pytorch/pytorch#159594).
        Source: `malloc`.
        """
        if self._collects:
            self._collect_garbage()
        block = self._grow(pool, size)
        if pool.is_private:
            return block
        if block is None and self._release_oversize(pool, size):
            block = self._grow(pool, size)
        if block is None:
            self.num_retries += 1
            self.empty_cache()
            block = self._grow(pool, size)
        return block

    def _grow(self, pool: Pool, size: int) -> Block | None:
        """Return a new segment for *size*, or None if a limit forbids it. Source: `alloc_block`."""
        nbytes = segment_size(size, self.settings.large_segment_size)
        if self._limit is not None and self.reserved + nbytes > self._limit:
            self._note_refusal(nbytes)
            return None
        block = Block(self._next_address, nbytes, pool)
        self._heads[block.address] = block
        self._next_address += SEGMENT_GAP
        self._note_growth(nbytes)
        return block

    def _give_back(self, block: Block) -> Block:
        """Merge *block* with its free neighbours, list the result and return it.

        Source: `free_block`, `try_merge_blocks`. Merged blocks keep the object at the lowest
        address, so the head of a segment never changes.
        """
        entries = block.pool.entries
        after = block.after
        if after is not None and after.is_free and after.is_mapped:
            del entries[bisect_left(entries, (after.size, after.address))]
            block.size += after.size
            block.after = behind = after.after
            if behind is not None:
                behind.before = block
        before = block.before
        if before is not None and before.is_free and before.is_mapped:
            del entries[bisect_left(entries, (before.size, before.address))]
            before.size += block.size
            before.after = behind = block.after
            if behind is not None:
                behind.before = before
            block = before
        block.is_free = True
        block.age = self._num_searches
        insort(entries, (block.size, block.address, block))
        return block

    def _release(self, block: Block) -> None:
        """Return a whole free segment to the driver."""
        block.pool.remove(block)
        del self._heads[block.address]
        self.reserved -= block.size

    def _release_pool(self, pool: Pool) -> None:
        """Return every wholly free segment of *pool* to the driver. Source: `release_blocks`."""
        for _, _, block in tuple(pool.entries):
            if block.is_whole:
                self._release(block)

    def _release_oversize(self, pool: Pool, size: int) -> bool:
        """Free cached blocks that are too large to be split, enough for *size*.

        One that is large enough by itself, else the largest ones until their sum is.
        Returns whether it freed enough. Source: `release_available_cached_blocks`.
        """
        limit = self.settings.max_split_size
        if limit is None:
            return False
        wanted = max(size, limit)
        index = bisect_left(pool.entries, (wanted,))
        if index < len(pool.entries):
            self._release(pool.entries[index][2])
            return True
        released = 0
        while released < wanted and pool.entries and pool.entries[-1][0] >= limit:
            released += pool.entries[-1][0]
            self._release(pool.entries[-1][2])
        return released >= wanted

    def _collect_garbage(self) -> None:
        """Free old whole segments of the ordinary large pools above the threshold."""
        assert self.allowed is not None
        threshold = int(self.settings.garbage_collection_threshold * self.allowed)
        whole = (
            block
            for pool in self._large.values()
            if pool.is_aged
            for _, _, block in pool.entries
            if block.is_whole
        )
        target = self.reserved - threshold
        for block in tuple(garbage(whole, now=self._num_searches, target=target)):
            self._release(block)
