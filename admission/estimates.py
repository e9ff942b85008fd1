"""Ask the workers for each estimate once, however many reviews want it.

    spec, devices -> cached, joined or fresh estimates

A review that gives up leaves its estimate running: the late answer fills the cache.
Never estimates anything itself, and never blocks the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import structlog

from admission.cache import Cache, CacheResult
from estimator.device import Device
from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    MemoryLimitError,
    TraceError,
)
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.workers.api import Estimator

MAX_RUNNING = 128
"""Questions waiting for the workers at once. Beyond it a review is late from the start."""

_log = structlog.get_logger()

T = TypeVar("T", Estimate, Fit)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much is remembered, and failures for how long."""

    entries: int = 2000
    failure_seconds: float = 600.0
    timeout_failure_seconds: float = 120.0

    def seconds(self, error: EstimatorError) -> float | None:
        """Return how long *error* is remembered: for ever if the spec itself is the reason."""
        if isinstance(error, EstimateTimeoutError):
            return self.timeout_failure_seconds
        if isinstance(error, TraceError | MemoryLimitError):
            return self.failure_seconds
        return None


class EstimatePool:
    """The webhook's estimator: a cache and one question a spec in front of the workers."""

    def __init__(
        self,
        workers: Estimator,
        *,
        retention: Retention | None = None,
        watcher: Watcher | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watcher: Watcher = watcher or NoWatcher()
        self._workers = workers
        kept = retention or Retention()
        self._estimates: _Answers[Estimate] = _Answers(self._timed_estimate, kept, clock=clock)
        self._fits: _Answers[Fit] = _Answers(workers.fit, kept, clock=clock)
        self._clock = clock

    async def estimate(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device, in order (see `Estimator`)."""
        return await self.ask(spec, devices).answers()

    def ask(self, spec: JobSpec, devices: Sequence[Device]) -> Question[Estimate]:
        """Return what is known of the estimates, whatever is not known being on its way.

        Raises:
            EstimateTimeoutError: if too much is on its way already.
        """
        question = self._estimates.ask(spec, devices)
        self._watcher.cache_asked(question.result)
        return question

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return what would fit each device, in order (see `Estimator`)."""
        return await self._fits.ask(spec, devices).answers()

    async def close(self) -> None:
        """Give up everything that is still running."""
        await self._estimates.close()
        await self._fits.close()

    async def _timed_estimate(
        self, spec: JobSpec, devices: Sequence[Device]
    ) -> tuple[Estimate, ...]:
        started = self._clock()
        try:
            estimates = await self._workers.estimate(spec, devices)
        except EstimatorError as error:
            self._watcher.estimated(spec, error, seconds=self._clock() - started)
            raise
        self._watcher.estimated(spec, estimates, seconds=self._clock() - started)
        return estimates


class AskingPool:
    """One review's view of the pool: remembers where its answers came from."""

    def __init__(self, pool: EstimatePool) -> None:
        self._pool = pool
        self.result: CacheResult | None = None
        """The slowest way any of the answers came; None while nothing was asked."""

    async def estimate(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device, in order (see `Estimator`)."""
        question = self._pool.ask(spec, devices)
        self.result = max(self.result or question.result, question.result, key=_SLOWNESS.index)
        return await question.answers()

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return what would fit each device, in order (see `Estimator`)."""
        return await self._pool.fit(spec, devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[T]):
    """What one caller waits for: a value, a failure or a running task for each device."""

    found: tuple[T | EstimatorError | _Running[T], ...]
    result: CacheResult

    async def answers(self) -> tuple[T, ...]:
        """Return the answers in order.

        Raises:
            EstimatorError: the first failure.
        """
        return tuple([await _answer(item) for item in self.found])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running(Generic[T]):
    """One device's answer on its way: its place among those the task will bring."""

    task: asyncio.Task[tuple[T, ...]]
    place: int


async def _answer(item: T | EstimatorError | _Running[T]) -> T:
    if isinstance(item, EstimatorError):
        raise _again(item)
    if isinstance(item, _Running):
        # The shield: a caller that is cancelled at its deadline does not end the task.
        return (await asyncio.shield(item.task))[item.place]
    return item


class _Answers(Generic[T]):
    """A cache of answers and the tasks that will fill it."""

    def __init__(
        self,
        source: Callable[[JobSpec, Sequence[Device]], Awaitable[tuple[T, ...]]],
        retention: Retention,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._source: Callable[[JobSpec, Sequence[Device]], Awaitable[tuple[T, ...]]] = source
        self._retention = retention
        self._cache: Cache[Key, T | EstimatorError] = Cache(entries=retention.entries, clock=clock)
        self._running: dict[Key, _Running[T]] = {}
        self._tasks: set[asyncio.Task[tuple[T, ...]]] = set()

    def ask(self, spec: JobSpec, devices: Sequence[Device]) -> Question[T]:
        """Return what is known or on its way for each of *devices*, and start what is not."""
        digest = spec.digest()
        cached = {device: self._cache.get((digest, device)) for device in devices}
        missing = [device for device, value in cached.items() if value is None]
        fresh = [device for device in missing if (digest, device) not in self._running]
        if fresh:
            self._start(spec, digest, fresh)
        found = [
            self._running[digest, device] if cached[device] is None else cached[device]
            for device in devices
        ]
        return Question(
            found=tuple(item for item in found if item is not None),
            result=_result(num_devices=len(cached), num_missing=len(missing), num_fresh=len(fresh)),
        )

    async def close(self) -> None:
        """Cancel every task and wait for its end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, spec: JobSpec, digest: str, devices: Sequence[Device]) -> None:
        if len(self._tasks) >= MAX_RUNNING:
            raise EstimateTimeoutError(
                f"{MAX_RUNNING} other estimates are waiting",
                hint="submit the job again in a minute, it is reviewed then",
            )
        task = asyncio.ensure_future(self._source(spec, devices))
        assert isinstance(task, asyncio.Task)
        self._tasks.add(task)
        keys = [(digest, device) for device in devices]
        for place, key in enumerate(keys):
            self._running[key] = _Running(task=task, place=place)
        task.add_done_callback(lambda done: self._finish(done, keys))

    def _finish(self, task: asyncio.Task[tuple[T, ...]], keys: Sequence[Key]) -> None:
        """Keep what *task* brought, though nobody may be waiting for it any more."""
        self._tasks.discard(task)
        for key in keys:
            del self._running[key]
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            for key, answer in zip(keys, task.result(), strict=True):
                self._cache.put(key, answer)
        elif isinstance(error, EstimatorError):
            seconds = self._retention.seconds(error)
            for key in keys:
                self._cache.put(key, _again(error), seconds=seconds)
        else:
            _log.error("estimate failed", exc_info=error)


def _result(*, num_devices: int, num_missing: int, num_fresh: int) -> CacheResult:
    if not num_missing:
        return CacheResult.HIT
    if not num_fresh:
        return CacheResult.JOINED
    return CacheResult.MISS if num_missing == num_devices else CacheResult.PARTIAL


def _again(error: EstimatorError) -> EstimatorError:
    """Return a copy of *error* to raise: a kept exception would keep its callers' frames alive."""
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    return copy
