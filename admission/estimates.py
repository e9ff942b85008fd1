"""Ask the workers for each estimate once, however many reviews want it.

    spec, devices, asker -> cached, joined or fresh estimates

Askers (namespaces) get the workers in rotation. A review that gives up leaves its estimate running:
the late answer fills the cache. What has not begun by then, and nobody else waits for, is dropped.
Never estimates anything itself, and never blocks the event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from admission.answers import MAX_ASKED, MAX_RUNNING, Answers
from admission.cache import CacheResult, Memory, Retention
from admission.errands import Errand, Question
from admission.judge.asking import Remembering
from admission.turns import Turns
from estimator.device import Device
from estimator.errors import EstimateTimeoutError, EstimatorError
from estimator.workers.api import Estimator, Job, spec_of

if TYPE_CHECKING:
    from estimator.result import Estimate, Fit
    from estimator.spec import JobSpec

Known = tuple[str, tuple[Device, ...]]
"""The digest of a spec, and devices that it has remembered estimates for."""

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
        self._turns = Turns(max_concurrent, room=MAX_RUNNING, room_each=MAX_ASKED)
        self._clock = clock
        kept = retention or Retention()
        self._estimates: Answers[Estimate] = Answers(
            self._timed_estimate, self._turns, Memory(kept, clock=clock), clock=clock
        )
        self._fits: Answers[Fit] = Answers(
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

    def remembered(self, digest: str, devices: Sequence[Device]) -> tuple[Estimate, ...] | None:
        """Return the estimates of the spec with *digest*; None unless each is remembered."""
        found = self._estimates.remembered(digest, devices)
        if found is not None:
            self._watcher.cache_asked(CacheResult.HIT)
        return found

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


class AskingPool(Remembering):
    """One review's view of the pool: who asks, and where the answers came from."""

    def __init__(self, pool: EstimatePool, *, asker: str = "") -> None:
        self._pool = pool
        self._asker = asker
        self._questions: list[Question[Estimate] | Question[Fit]] = []
        self._has_left = False
        self.result: CacheResult | None = None
        """The slowest way any of the answers came; None while nothing was asked."""
        self.known: list[Known] = []
        """The estimates that were remembered."""
        self.is_settled = True
        """Whether no answer was waited for, or was none: asked again, it is the same."""

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device, in order (see `Estimator`)."""
        was_settled = self._begin()
        question, result = self._pool.ask(job, devices, asker=self._asker)
        self._take(question, was_settled=was_settled)
        self.known.append((spec_of(job).digest(), tuple(devices)))
        self.result = max(self.result or result, result, key=_SLOWNESS.index)
        return await question.answers()

    def remembered(self, digest: str, devices: Sequence[Device]) -> tuple[Estimate, ...] | None:
        """Return the estimates of the spec with *digest*; None unless each is remembered."""
        found = None if self._has_left else self._pool.remembered(digest, devices)
        if found is not None:
            self.result = self.result or CacheResult.HIT  # the fastest of all ways
            self.known.append((digest, tuple(devices)))
        return found

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return what would fit each device, in order (see `Estimator`)."""
        was_settled = self._begin()
        question = self._pool.ask_fits(spec, devices, asker=self._asker)
        self._take(question, was_settled=was_settled)
        return await question.answers()

    def leave(self) -> None:
        """Wait no longer, the review being answered: what nobody waits for need not begin."""
        self._has_left = True
        for question in self._questions:
            question.leave()

    def _begin(self) -> bool:
        """Return whether all was settled so far; nothing is until the question could be put."""
        was_settled, self.is_settled = self.is_settled, False
        if self._has_left:
            raise EstimateTimeoutError("the review is answered already")
        return was_settled

    def _take(self, question: Question[Estimate] | Question[Fit], *, was_settled: bool) -> None:
        self._questions.append(question)
        self.is_settled = was_settled and question.is_known
