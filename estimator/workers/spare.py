"""The fork that goes on after its answer, for the same job at another batch.

    Fork that has answered -> traces to keep

Never more than one, never one that somebody waits for: it holds no slot, has the least priority,
and is ended as soon as a fork is asked for.
"""

from __future__ import annotations

import asyncio

from estimator.workers.exchange import next_frame
from estimator.workers.keeping import Keeping
from estimator.workers.outcome import Ended, log_failure
from estimator.workers.process import Fork
from estimator.workers.wire import GO_ON


class Spare:
    """At most one fork for which nobody waits. Belongs to one event loop."""

    def __init__(self, keeping: Keeping) -> None:
        """Put what it traces into *keeping*."""
        self._keeping = keeping
        self._fork: Fork | None = None
        self._hearing: set[asyncio.Task[None]] = set()

    def take(self, fork: Fork, job: str) -> None:
        """Have *fork* go on tracing *job*, which it was asked about."""
        self.drop()
        fork.template.set_aside(fork)
        self._fork = fork
        hearing = asyncio.create_task(self._hear(fork, job))
        self._hearing.add(hearing)
        hearing.add_done_callback(self._hearing.discard)
        fork.ended.add_done_callback(self._note_end)

    def drop(self) -> None:
        """End the fork there is, before any that is ordered later."""
        fork, self._fork = self._fork, None
        if fork is not None:
            fork.ended.remove_done_callback(self._note_end)
            fork.template.end(fork)

    @property
    def is_at_work(self) -> bool:
        """Return whether there is one."""
        return self._fork is not None

    async def close(self) -> None:
        """End the fork there is, and hear no more."""
        self.drop()
        for hearing in tuple(self._hearing):
            hearing.cancel()
        await asyncio.gather(*self._hearing, return_exceptions=True)

    async def _hear(self, fork: Fork, job: str) -> None:
        """Keep what *fork* traces, until it ends."""
        with fork.request:
            try:
                fork.request.send(GO_ON)
            except OSError:
                return
            while (content := await next_frame(fork.request)) is not None:
                self._keeping.add(job, (content,))

    def _note_end(self, ended: asyncio.Future[Ended]) -> None:
        self._fork = None
        log_failure(ended.result())
