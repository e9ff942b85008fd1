"""Dead blocks that a second stream may still use.

    block -> later, the block that comes back

The real allocator asks the device at every request whether the second stream is done. How far
the host runs ahead is not known, so the number of blocks that wait is a modelled choice.

Source: `process_events`, `insert_events`, `needs_events_deferred_until_no_capture` in
pytorch/pytorch@001074d25084fdb87a799823e395a50f5ec044d3 c10/cuda/CUDACachingAllocator.cpp.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from estimator.allocators.blocks import Block

MAX_WAITING = 2
"""Blocks used on a second stream that wait before the oldest comes back.

FSDP limits how far the host runs ahead to two gathered units.
Source: torch 2.15.0 (d0f2af8b) distributed/fsdp/_limiter_utils.py (`_FreeEventQueue`).
"""


class WaitingBlocks:
    """The blocks that wait, oldest first."""

    def __init__(self) -> None:
        self._ordinary: deque[Block] = deque()
        self._captured: deque[Block] = deque()

    def __iter__(self) -> Iterator[Block]:
        """Yield every block that waits, without taking it."""
        yield from self._ordinary
        yield from self._captured

    def put(self, block: Block) -> Block | None:
        """Let *block* wait and return the one that comes back for it, if any.

        A device that records a graph is not asked, so blocks of private pools wait for `drain`.
        """
        if block.pool.is_private:
            self._captured.append(block)
            return None
        self._ordinary.append(block)
        return self._ordinary.popleft() if len(self._ordinary) > MAX_WAITING else None

    def drain(self) -> Iterator[Block]:
        """Yield every block that waits: the host has waited for the device."""
        for blocks in (self._ordinary, self._captured):
            while blocks:
                yield blocks.popleft()
