"""Sizes of PyTorch's caching allocator: of a block, and of the segment that serves it.

    bytes, settings -> block bytes -> segment bytes

Pure arithmetic; which block is taken is `caching.py`'s affair.

Source: pytorch/pytorch@001074d25084fdb87a799823e395a50f5ec044d3 c10/cuda/CUDACachingAllocator.cpp
(`round_size`, `roundup_power2_next_division`, `get_allocation_size`);
torch 2.15.0 (d0f2af8b) include/c10/core/AllocatorConfig.h has the same constants.
"""

from __future__ import annotations

from estimator.units import MIB, round_up

BLOCK = 512
"""`kMinBlockSize`: blocks are multiples of it."""
SMALL_REQUEST = 1 * MIB
"""`kSmallSize`: the largest block of the small pool."""
SMALL_SEGMENT = 2 * MIB
"""`kSmallBuffer`: segment of the small pool, and page of its expandable segments."""
LARGE_REQUEST = 10 * MIB
"""`kMinLargeAlloc`: from here on a block gets a segment of its own."""
LARGE_SEGMENT = 20 * MIB
"""`kLargeBuffer`: default of `large_segment_size_mb`."""
LARGE_STEP = 2 * MIB
"""`kRoundLarge`: own segments are multiples of it."""
NUM_INTERVALS = 16
"""Intervals of `roundup_power2_divisions`: 1 MiB, 2 MiB, … 32 GiB and above."""


def block_size(nbytes: int, divisions: tuple[int, ...] | None = None) -> int:
    """Return the block size of a request of *nbytes* (more than 0).

    A multiple of 512 bytes; with *divisions* (one entry an interval) the next of that many
    equal steps between two powers of two, once a step is at least 512 bytes.
    """
    if divisions is not None:
        count = divisions[min(max(nbytes.bit_length() - 21, 0), NUM_INTERVALS - 1)]
        if count > 1 and nbytes > BLOCK * count:
            return _next_division(nbytes, count)
    return max(BLOCK, round_up(nbytes, BLOCK))


def _next_division(nbytes: int, divisions: int) -> int:
    """Return the next of *divisions* equal steps above the power of two under *nbytes*."""
    power = 1 << (nbytes.bit_length() - 1)
    return round_up(nbytes, power >> (divisions.bit_length() - 1))


def segment_size(block: int, large_segment: int = LARGE_SEGMENT) -> int:
    """Return how many bytes the allocator asks the driver for to serve a *block*.

    Blocks up to 1 MiB share 2 MiB segments, blocks under 10 MiB share segments of
    *large_segment*, and larger ones get a segment of their own in 2 MiB steps.
    """
    if block <= SMALL_REQUEST:
        return SMALL_SEGMENT
    if block < LARGE_REQUEST:
        return large_segment
    return round_up(block, LARGE_STEP)
