"""Ask the workers for each estimate once, however many reviews want it.

    spec, devices, asker -> cached, joined or fresh estimates

Askers (namespaces) get the workers in rotation. A review that gives up leaves its estimate running:
the late answer fills the cache. What has not begun by then, and nobody else waits for, is dropped.
Never estimates anything itself, and never blocks the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from admission.cache import CacheResult, Memory, Retention
from admission.errands import Awaited, Errand, Question
from admission.turns import Turns
from estimator.deferred import Deferred
from estimator.device import Device
from estimator.errors import EstimateTimeoutError, EstimatorError
from estimator.workers.api import Estimator, Job, spec_of

if TYPE_CHECKING:
    import structlog

    from estimator.result import Estimate, Fit
    from estimator.spec import JobSpec
else:
    structlog = Deferred("structlog")

MAX_RUNNING = 128
"""Questions with the workers or waiting for them. Beyond it a review is late from the start."""
MAX_ASKED = 32
"""Of them by one asker."""

T = TypeVar("T", "Estimate", "Fit")
Key = tuple[str, Device]

_SLOWNESS = (CacheResult.HIT, CacheResult.JOINED, CacheResult.PARTIAL, CacheResult.MISS)


class Watcher(Protocol):
    """Who wants to know what was asked and how long it took: the metrics."""

    def cache_asked(self, result: CacheResult) -> None:
        """Count one question."""

    def estimated(
        self, spec: JobSpec, outcome: Sequence[Estimate] | EstimatorError, *, seconds: float
    ) -> None:
        """Count one estimate by a worker."""


class NoWatcher:
    """Counts nothing."""

    def cache_asked(self, result: CacheResult) -> None:
        """Count one question."""

    def estimated(
        self, spec: JobSpec, outcome: Sequence[Estimate] | EstimatorError, *, seconds: float
    ) -> None:
        """Count one estimate by a worker."""


class EstimatePool:
    """The webhook's estimator: a cache and one question a spec in front of the workers."""

    def __init__(
        self,
        workers: Estimator,
        *,
        max_concurrent: int = MAX_RUNNING,
        retention: Retention | None = None,
        watcher: Watcher | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watcher: Watcher = watcher or NoWatcher()
        self._turns = Turns(max_concurrent)
        self._clock = clock
        kept = retention or Retention()
        self._estimates: _Answers[Estimate] = _Answers(
            self._timed_estimate, self._turns, Memory(kept, clock=clock), clock=clock
        )
        self._fits: _Answers[Fit] = _Answers(
            self._fit, self._turns, Memory(kept, clock=clock), clock=clock
        )
        self._workers = workers

    @property
    def num_waiting(self) -> int:
        """Return how many questions wait for a worker."""
        return self._turns.num_waiting

    def retain(self, retention: Retention) -> None:
        """Remember answers by *retention* from now on."""
        self._estimates.retain(retention)
        self._fits.retain(retention)

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device, in order (see `Estimator`)."""
        return await AskingPool(self).estimate(job, devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return what would fit each device, in order (see `Estimator`)."""
        return await AskingPool(self).fit(spec, devices)

    def ask(
        self, job: Job, devices: Sequence[Device], *, asker: str
    ) -> tuple[Question[Estimate], CacheResult]:
        """Return what is known of the estimates, whatever is not known being on its way.

        Raises:
            EstimateTimeoutError: if too much is on its way already.
        """
        question, result = self._estimates.ask(job, devices, asker=asker)
        self._watcher.cache_asked(result)
        return question, result

    def ask_fits(self, spec: JobSpec, devices: Sequence[Device], *, asker: str) -> Question[Fit]:
        """Return the same of what would fit."""
        return self._fits.ask(spec, devices, asker=asker)[0]

    async def close(self) -> None:
        """Give up everything that is still running."""
        await self._estimates.close()
        await self._fits.close()

    async def _timed_estimate(self, errand: Errand[Estimate]) -> tuple[Estimate, ...]:
        try:
            estimates = await self._workers.estimate(errand.job, errand.devices)
        except EstimatorError as error:
            self._watch(errand, error)
            raise
        self._watch(errand, estimates)
        return estimates

    def _watch(
        self, errand: Errand[Estimate], outcome: Sequence[Estimate] | EstimatorError
    ) -> None:
        seconds = self._clock() - errand.since
        self._watcher.estimated(spec_of(errand.job), outcome, seconds=seconds)

    async def _fit(self, errand: Errand[Fit]) -> tuple[Fit, ...]:
        return await self._workers.fit(spec_of(errand.job), errand.devices)


class AskingPool:
    """One review's view of the pool: who asks, and where the answers came from."""

    def __init__(self, pool: EstimatePool, *, asker: str = "") -> None:
        self._pool = pool
        self._asker = asker
        self._questions: list[Question[Estimate] | Question[Fit]] = []
        self._has_left = False
        self.result: CacheResult | None = None
        """The slowest way any of the answers came; None while nothing was asked."""

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device, in order (see `Estimator`)."""
        self._check()
        question, result = self._pool.ask(job, devices, asker=self._asker)
        self._questions.append(question)
        self.result = max(self.result or result, result, key=_SLOWNESS.index)
        return await question.answers()

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return what would fit each device, in order (see `Estimator`)."""
        self._check()
        question = self._pool.ask_fits(spec, devices, asker=self._asker)
        self._questions.append(question)
        return await question.answers()

    def leave(self) -> None:
        """Wait no longer, the review being answered: what nobody waits for need not begin."""
        self._has_left = True
        for question in self._questions:
            question.leave()

    def _check(self) -> None:
        if self._has_left:
            raise EstimateTimeoutError("the review is answered already")


class _Answers(Generic[T]):
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
        found = [
            self._running[digest, device] if known[device] is None else known[device]
            for device in devices
        ]
        result = _result(num_devices=len(known), num_missing=len(missing), num_fresh=len(fresh))
        return Question([item for item in found if item is not None]), result

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
        num_asked = sum(errand.asker == asker for errand in self._errands)
        if len(self._errands) >= MAX_RUNNING or num_asked >= MAX_ASKED:
            raise EstimateTimeoutError(
                f"{len(self._errands)} other estimates are waiting",
                hint="submit the job again in a minute, it is reviewed then",
            )
        errand: Errand[T] = Errand(
            job=job,
            devices=tuple(devices),
            asker=asker,
            since=self._clock(),
        )
        errand.task = asyncio.create_task(self._run(errand))
        self._errands.add(errand)
        keys = [(digest, device) for device in devices]
        for place, key in enumerate(keys):
            self._running[key] = Awaited(errand=errand, place=place)
        errand.task.add_done_callback(lambda task: self._finish(errand, keys, task))

    async def _run(self, errand: Errand[T]) -> tuple[T, ...]:
        await self._turns.wait(errand.asker)
        errand.has_begun = True
        try:
            return await self._source(errand)
        finally:
            self._turns.give_back()

    def _finish(
        self, errand: Errand[T], keys: Sequence[Key], task: asyncio.Task[tuple[T, ...]]
    ) -> None:
        """Keep what *task* brought, though nobody may be waiting for it any more."""
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
