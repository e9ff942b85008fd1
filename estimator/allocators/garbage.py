"""Which cached segments PyTorch's garbage collection frees.

    whole free blocks, now, target -> blocks to free

Pure: the allocator says which blocks are whole and frees what comes back.

Source: pytorch/pytorch@001074d25084fdb87a799823e395a50f5ec044d3 c10/cuda/CUDACachingAllocator.cpp
(`garbage_collect_cached_blocks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from estimator.allocators.blocks import Block


def garbage(whole: Iterable[Block], *, now: int, target: int) -> Iterator[Block]:
    """Yield the blocks to free, by rounds, until *target* bytes are reached.

    The age of a block is the number of searches since it became free. Each round takes every
    block of at least the average age, even beyond the target.
    """
    left = list(whole)
    while target > 0 and left:
        ages = sum(now - block.age for block in left)
        old = [block for block in left if (now - block.age) * len(left) >= ages]
        left = [block for block in left if (now - block.age) * len(left) < ages]
        target -= sum(block.size for block in old)
        yield from old
