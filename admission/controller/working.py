"""Have each duty look at its keys, and carry out what it says.

    changes -> Line -> Duty.look -> Acts -> Acting

Each duty has a line of its own: looks that wait for estimates hold up no death. A duty that fails
is our fault: it is logged with its traceback, and looks again later. The others go on. The one
place here that catches broad exceptions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from admission.controller.acting import Acting, Outcome
from admission.controller.acts import Look
from admission.controller.duty import Add, Duty, Follow, Follower
from admission.controller.line import Line
from admission.controller.pods import PodView
from admission.controller.tracked import Tracked
from admission.errors import ClusterError
from admission.watch import Changes

WORKERS = 4
"""Looks of one duty at once: most wait for the API server or for an estimate."""
_log = structlog.get_logger()

Count = Callable[[str, Outcome], None]


class Working:
    """The duties at work; a listener of the store."""

    def __init__(
        self,
        duties: Sequence[Duty],
        acting: Acting,
        *,
        may_act: Callable[[], bool],
        count: Count = lambda *_: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._duties = {duty.name: duty for duty in duties}
        self._acting = acting
        self._may_act = may_act
        """Whether it is certain that no other controller acts."""
        self._count = count
        self._lines = {name: Line(clock=clock) for name in self._duties}
        self._adds: dict[str, Add] = {name: partial(self._add, name) for name in self._duties}

    @property
    def length(self) -> int:
        """Return how many keys wait to be looked at."""
        return sum(line.length for line in self._lines.values())

    def _add(self, name: str, key: str, after: float = 0.0) -> None:
        self._lines[name].add(key, after=after)

    def followed(self) -> tuple[tuple[Follow, Callable[[Changes], None]], ...]:
        """Return what duties follow themselves, and who takes the changes."""
        return tuple(
            (follow, partial(_taken, follow, self._adds[name]))
            for name, duty in self._duties.items()
            if isinstance(duty, Follower)
            for follow in duty.follows
        )

    def pod_changed(self, pod: PodView) -> None:
        """Take note of a pod that is new or has changed."""
        for name, duty in self._duties.items():
            duty.pod_changed(pod, self._adds[name])

    def workload_changed(self, workload: Tracked) -> None:
        """Take note of a workload that is new or has changed."""
        for name, duty in self._duties.items():
            duty.workload_changed(workload, self._adds[name])

    def classes_changed(self) -> None:
        """Take note that the cluster has other cards."""
        for name, duty in self._duties.items():
            duty.classes_changed(self._adds[name])

    async def run(self) -> None:
        """Look, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name in self._duties:
                for _ in range(WORKERS):
                    group.create_task(self._look_on(name))

    async def _look_on(self, name: str) -> None:
        line = self._lines[name]
        while True:
            key = await line.next()
            try:
                await self._look(name, key)
            except asyncio.CancelledError:
                raise
            except ClusterError as error:
                _log.warning("look failed", duty=name, key=key, reason=str(error))
                line.failed(key)
            except Exception:
                _log.exception("duty failed", duty=name, key=key)
                line.failed(key)

    async def _look(self, name: str, key: str) -> None:
        look = await self._duties[name].look(key)
        outcome = await self._acted(name, look)
        if outcome is Outcome.AGAIN:
            self._lines[name].failed(key)
        else:
            self._lines[name].done(key, again=look.again_seconds)

    async def _acted(self, name: str, look: Look) -> Outcome:
        """Carry out *look*; return the outcome of the act that ended it."""
        outcome = Outcome.DONE
        for act in look.acts:
            if not self._may_act():
                return Outcome.AGAIN
            outcome = await asyncio.to_thread(self._acting.act, act)
            self._count(name, outcome)
            if outcome is Outcome.AGAIN:
                break
        return outcome


def _taken(follow: Follow, add: Add, changes: Changes) -> None:
    follow.take(changes, add)
