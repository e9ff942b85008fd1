"""What the workers said, and what they are about to say.

    spec, devices, asker -> remembered answers, and errands for those that are not

An errand that was begun goes on though nobody waits: its answer is remembered all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from admission.cache import CacheResult, Memory, Retention
from admission.errands import Awaited, Errand, Question
from admission.turns import NoRoomError, Turns
from estimator.deferred import Deferred
from estimator.device import Device
from estimator.errors import EstimateTimeoutError, EstimatorError
from estimator.workers.api import Job, spec_of

if TYPE_CHECKING:
    import structlog

    from estimator.result import Estimate, Fit
else:
    structlog = Deferred("structlog")

MAX_RUNNING = 128
"""Questions with the workers or waiting for them. Beyond it a review is late from the start, or
the newest question of whoever has the most waiting is."""
MAX_ASKED = 32
"""Of them by one asker."""


class ShedError(EstimateTimeoutError):
    """It was not asked, since too much is: late, and nothing to remember."""


T = TypeVar("T", "Estimate", "Fit")
Key = tuple[str, Device]


class Answers(Generic[T]):
    """What is remembered, and the errands that will add to it."""

    def __init__(
        self,
        source: Callable[[Errand[T]], Coroutine[Any, Any, tuple[T, ...]]],
        turns: Turns,
        memory: Memory[Key, T],
        *,
        clock: Callable[[], float],
    ) -> None:
        self._source: Callable[[Errand[T]], Coroutine[Any, Any, tuple[T, ...]]] = source
        self._turns = turns
        self._memory: Memory[Key, T] = memory
        self._clock = clock
        self._running: dict[Key, Awaited[T]] = {}
        self._errands: set[Errand[T]] = set()

    def retain(self, retention: Retention) -> None:
        """Remember by *retention* from now on."""
        self._memory.retain(retention)

    def ask(
        self, job: Job, devices: Sequence[Device], *, asker: str
    ) -> tuple[Question[T], CacheResult]:
        """Return what is known or on its way for each of *devices*, and start what is not."""
        digest = spec_of(job).digest()
        known = {device: self._memory.get((digest, device)) for device in devices}
        missing = [device for device, value in known.items() if value is None]
        fresh = [device for device in missing if not self._is_running((digest, device))]
        if fresh:
            self._start(job, digest, fresh, asker=asker)
        for device in missing:
            self._join(self._running[digest, device].errand, asker)
        found = [
            self._running[digest, device] if known[device] is None else known[device]
            for device in devices
        ]
        result = _result(num_devices=len(known), num_missing=len(missing), num_fresh=len(fresh))
        return Question([item for item in found if item is not None]), result

    def remembered(self, digest: str, devices: Sequence[Device]) -> tuple[T, ...] | None:
        """Return the answers for *devices*; None if one is not known, or is a failure."""
        found: list[T] = []
        for device in devices:
            value = self._memory.get((digest, device))
            if value is None or isinstance(value, EstimatorError):
                return None
            found.append(value)
        return tuple(found)

    async def close(self) -> None:
        """Cancel every errand and wait for its end."""
        tasks = [errand.task for errand in self._errands]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_running(self, key: Key) -> bool:
        """Return whether the answer at *key* is on its way: what was just dropped is not."""
        running = self._running.get(key)
        return running is not None and not running.errand.is_dropped

    def _start(self, job: Job, digest: str, devices: Sequence[Device], *, asker: str) -> None:
        try:
            turn = self._turns.ask(asker)
        except NoRoomError:
            raise self._shed() from None
        errand: Errand[T] = Errand(
            job=job,
            devices=tuple(devices),
            since=self._clock(),
        )
        errand.join(turn)
        errand.task = asyncio.create_task(self._run(errand))
        self._errands.add(errand)
        keys = [(digest, device) for device in devices]
        for place, key in enumerate(keys):
            self._running[key] = Awaited(errand=errand, place=place)
        errand.task.add_done_callback(lambda task: self._finish(errand, keys, task))

    def _join(self, errand: Errand[T], asker: str) -> None:
        """Let *errand* begin in the turn of *asker* too: it need not wait in another's line."""
        if errand.has_begun or asker in errand.turns:
            return
        with suppress(NoRoomError):
            errand.join(self._turns.ask(asker))

    def _shed(self) -> ShedError:
        return ShedError(
            f"{self._turns.num_asked} other estimates are waiting",
            hint="submit the job again in a minute, it is reviewed then",
        )

    async def _run(self, errand: Errand[T]) -> tuple[T, ...]:
        try:
            others = await errand.begin()
        except NoRoomError:
            raise self._shed() from None
        for turn in others:
            self._turns.give_back(turn)
        return await self._source(errand)

    def _finish(
        self, errand: Errand[T], keys: Sequence[Key], task: asyncio.Task[tuple[T, ...]]
    ) -> None:
        """Keep what *task* brought, though nobody may be waiting for it any more."""
        for turn in errand.turns.values():
            self._turns.give_back(turn)
        self._errands.discard(errand)
        for key in keys:
            running = self._running.get(key)
            if running is not None and running.errand is errand:
                del self._running[key]
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            for key, answer in zip(keys, task.result(), strict=True):
                self._memory.put(key, answer)
        elif isinstance(error, ShedError):
            pass  # it says nothing of the job
        elif isinstance(error, EstimatorError):
            for key in keys:
                self._memory.fail(key, error)
        else:
            structlog.get_logger().error("estimate failed", exc_info=error)


def _result(*, num_devices: int, num_missing: int, num_fresh: int) -> CacheResult:
    if not num_missing:
        return CacheResult.HIT
    if not num_fresh:
        return CacheResult.JOINED
    return CacheResult.MISS if num_missing == num_devices else CacheResult.PARTIAL
