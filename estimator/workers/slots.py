"""How many forks may be at work at once, and how many are.

    Fork -> a slot until it ends, or until it is let go of

Belongs to one event loop.
"""

from __future__ import annotations

import asyncio

from estimator.workers.outcome import Ended, log_failure
from estimator.workers.process import Fork


class Slots:
    """The slots of a pool."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.busy = 0
        """Forks that hold one."""
        self.waiting = 0
        """Who waits for a template or a slot."""
        self._free = asyncio.Semaphore(number)

    async def acquire(self) -> None:
        """Wait for a slot and take it."""
        await self._free.acquire()

    def release(self) -> None:
        """Give back a slot that no fork holds."""
        self._free.release()

    def hold(self, fork: Fork) -> None:
        """Let *fork* hold the slot that was taken, until it ends."""
        self.busy += 1
        fork.ended.add_done_callback(self._give_back)

    def let_go(self, fork: Fork) -> bool:
        """Take its slot from *fork* if it may go on without: it is the only one, nobody waits.

        With one slot there may be one processor, which is not to be taken from who asks.
        """
        if self.number == 1 or self.busy != 1 or self.waiting:
            return False
        if not fork.ended.remove_done_callback(self._give_back):
            return False  # it has ended, and given its slot back
        self.busy -= 1
        self._free.release()
        return True

    def _give_back(self, ended: asyncio.Future[Ended]) -> None:
        self.busy -= 1
        self._free.release()
        log_failure(ended.result())
