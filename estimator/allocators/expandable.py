"""PyTorch's caching allocator with `expandable_segments:True`.

    tensor id, bytes, stream -> allocated, reserved

One growing address range a stream and pool, mapped in pages of 2 MiB (small pool) or 20 MiB
(large pool), and unmapped page by page when memory is short or the cache is emptied. Everything
else is the caching allocator's.

Garbage collection and `max_split_size_mb` releases leave expandable segments alone.

Not modelled: the end of the address range (9/8 of the card, `expandable_segments_reserve`),
switching the option during a run, sharing with other processes. Before torch 2.7 or so both of
those releases took expandable blocks for segments and stopped the job (pytorch/pytorch#123548).

Source: `find_expandable_block`, `map_block`, `unmap_block`, `get_free_block`, `release_blocks` in
pytorch/pytorch@001074d25084fdb87a799823e395a50f5ec044d3 c10/cuda/CUDACachingAllocator.cpp.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from estimator.allocators.blocks import Block, Pool
from estimator.allocators.caching import SEGMENT_GAP, CachingAllocator
from estimator.allocators.rounding import SMALL_SEGMENT, segment_size
from estimator.allocators.settings import CachingSettings
from estimator.units import round_up

RANGE = SEGMENT_GAP // 2
"""Address range of a segment, endless in practice."""


class ExpandableAllocator(CachingAllocator):
    """The allocator whose segments grow and shrink by pages."""

    def __init__(
        self,
        settings: CachingSettings | None = None,
        *,
        capacity: int | None = None,
        allowed: int | None = None,
    ) -> None:
        super().__init__(
            settings or CachingSettings(expandable_segments=True),
            capacity=capacity,
            allowed=allowed,
        )
        self._unmapped: dict[Pool, list[tuple[int, Block]]] = {}

    def _may_split(self, size: int) -> bool:  # noqa: ARG002 - the base class needs the size
        """Return True: expandable blocks are split whatever `max_split_size_mb` says."""
        return True

    def _take(self, pool: Pool, size: int) -> Block | None:
        """Return the best fit, where a block at the growing end counts as large as it can get."""
        entries = pool.entries
        index = bisect_left(entries, (size,))
        if index == len(entries):
            return None
        while index + 1 < len(entries) and _reach(entries[index + 1][2]) < _reach(
            entries[index][2]
        ):
            index += 1
        block = entries[index][2]
        if not self._fits_limits(block.size, size):
            return None
        del entries[index]
        return block

    def _grow(self, pool: Pool, size: int) -> Block | None:
        """Return a block of at least *size*, mapping pages at the lowest address it can."""
        nbytes = segment_size(size, self.settings.large_segment_size)
        if self.allowed is not None and self.reserved + nbytes > self.allowed:
            return None
        block: Block | None = self._room(pool, size)
        assert block is not None
        if not block.is_mapped:
            block = self._map(pool, block, min(block.size, size))
        while block is not None and block.size < size:
            behind = block.after
            assert behind is not None
            block = self._map(pool, behind, min(size - block.size, behind.size))
        if block is not None:
            pool.remove(block)
        return block

    def _page(self, pool: Pool) -> int:
        return SMALL_SEGMENT if pool.is_small else self.settings.large_segment_size

    def _room(self, pool: Pool, size: int) -> Block:
        """Return the first block of the lowest stretch of free or unmapped room for *size*."""
        for _, block in self._unmapped.setdefault(pool, []):
            start = block
            if block.before is not None and block.before.is_free:
                start = block.before
            room = 0
            reached: Block | None = start
            while room < size and reached is not None and reached.is_free:
                room += reached.size
                reached = reached.after
            if room >= size:
                return start
        return self._open_range(pool)

    def _open_range(self, pool: Pool) -> Block:
        """Return a new address range, all of it unmapped.

        Not cut to the cap that is tried: a range that ends early makes blocks near its end
        look small to the best fit, which no job ever sees.
        """
        page = self._page(pool)
        block = Block(round_up(self._next_address, page), round_up(RANGE, page), pool)
        self._next_address += SEGMENT_GAP
        block.is_free = True
        block.is_mapped = False
        self._heads[block.address] = block
        insort(self._unmapped[pool], (block.address, block))
        return block

    def _map(self, pool: Pool, block: Block, size: int) -> Block | None:
        """Map the pages of the first *size* bytes of an unmapped block.

        Returns the free block they are now part of, None if the card has no memory for them.
        """
        nbytes = round_up(size, self._page(pool))
        if self.capacity is not None and self.reserved + nbytes > self.capacity:
            self._note_refusal(nbytes)
            return None
        self._unlist(pool, block)
        if nbytes < block.size:
            rest = block.split(nbytes)
            rest.is_free = True
            insort(self._unmapped[pool], (rest.address, rest))
        block.is_mapped = True
        self._note_growth(nbytes)
        return self._give_back(block)

    def _unlist(self, pool: Pool, block: Block) -> None:
        """Take an unmapped block out of its list."""
        unmapped = self._unmapped[pool]
        del unmapped[bisect_left(unmapped, (block.address,))]

    def _release_pool(self, pool: Pool) -> None:
        """Unmap every whole page inside the free blocks of *pool*."""
        for _, _, block in tuple(pool.entries):
            unmapped = self._unmap(pool, block)
            if unmapped is not None and unmapped.is_whole:
                self._unlist(pool, unmapped)
                del self._heads[unmapped.address]

    def _unmap(self, pool: Pool, block: Block) -> Block | None:
        """Unmap the whole pages inside a free *block*; return the unmapped stretch, if any."""
        page = self._page(pool)
        begin = round_up(block.address, page)
        end = (block.address + block.size) // page * page
        if begin >= end:
            return None
        pool.remove(block)
        middle = block
        if begin > block.address:
            middle = block.split(begin - block.address)
            pool.add(block)
        if end < middle.address + middle.size:
            tail = middle.split(end - begin)
            tail.is_free = True
            pool.add(tail)
        middle.is_free = True
        middle.is_mapped = False
        self.reserved -= middle.size
        return self._merge_unmapped(pool, middle)

    def _merge_unmapped(self, pool: Pool, block: Block) -> Block:
        """Merge an unmapped *block* with unmapped neighbours, list it and return it."""
        if block.after is not None and not block.after.is_mapped:
            self._unlist(pool, block.after)
            block.absorb_after()
        if block.before is not None and not block.before.is_mapped:
            block = block.before
            self._unlist(pool, block)
            block.absorb_after()
        insort(self._unmapped[pool], (block.address, block))
        return block

    def _release_oversize(self, pool: Pool, size: int) -> bool:  # noqa: ARG002
        """Return False: expandable segments are released page by page only."""
        return False

    def _collect_garbage(self) -> None:
        """Do nothing: garbage collection leaves expandable segments alone."""


def _reach(block: Block) -> int:
    """Return the size *block* can grow to where it lies."""
    after = block.after
    return block.size + (after.size if after is not None and not after.is_mapped else 0)
