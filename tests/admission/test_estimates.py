"""The pool asks the workers once for what many reviews want, and remembers the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from admission.answers import MAX_ASKED, MAX_RUNNING
from admission.cache import CacheResult, Retention
from admission.estimates import AskingPool, EstimatePool
from estimator.device import Device
from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    EstimatorUnavailableError,
    MemoryLimitError,
    Problem,
    SpecError,
    TraceError,
    UnsupportedJobError,
)
from estimator.notes import UnknownCode
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.units import GIB
from estimator.workers.api import Job, spec_of
from tests.builders import device, estimate, fit, job_spec

T4 = device("Tesla-T4")
A100 = device("NVIDIA-A100", budget=40 * GIB)


class FakeWorkers:
    """Answers 10 GiB for everything once it may; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.fitted: list[tuple[int, ...]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.failure: Exception | None = None

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device, or raise the failure."""
        spec = spec_of(job)
        self.asked.append(tuple(card.name for card in devices))
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure
        return tuple(estimate(least=10 * GIB, card=card, spec=spec) for card in devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return one fit a device."""
        self.fitted.append((spec.input.batch_size, len(devices)))
        return tuple(fit(largest_batch=8) for _ in devices)


class Counts:
    """Counts what the pool tells its watcher."""

    def __init__(self) -> None:
        self.results: list[CacheResult] = []
        self.outcomes: list[str] = []

    def cache_asked(self, result: CacheResult) -> None:
        """Note one question."""
        self.results.append(result)

    def estimated(
        self, spec: JobSpec, outcome: Sequence[Estimate] | EstimatorError, *, seconds: float
    ) -> None:
        """Note one estimate."""
        assert seconds >= 0
        ending = outcome.kind if isinstance(outcome, EstimatorError) else "ok"
        self.outcomes.append(f"{spec.framework} {ending}")


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def names(pool: EstimatePool, *cards: Device, batch_size: int = 8) -> list[str]:
    """Return the card of each estimate the pool gives."""
    found = await pool.estimate(job_spec(batch_size=batch_size), cards)
    return [answer.device.name for answer in found]


async def test_second_review_of_a_spec_asks_nobody() -> None:
    """The answer is remembered by spec and card."""
    workers, counts = FakeWorkers(), Counts()
    pool = EstimatePool(workers, watcher=counts)

    first = await pool.estimate(job_spec(), [T4])
    second = await pool.estimate(job_spec(), [T4])

    assert first == second
    assert workers.asked == [("Tesla-T4",)]
    assert counts.results == [CacheResult.MISS, CacheResult.HIT]
    assert counts.outcomes == ["pytorch ok"]


async def test_only_missing_cards_are_asked_for() -> None:
    """A card that is new in the cluster costs one estimate, and the order is the caller's."""
    workers, counts = FakeWorkers(), Counts()
    pool = EstimatePool(workers, watcher=counts)
    await names(pool, T4)

    found = await names(pool, A100, T4)

    assert found == ["NVIDIA-A100", "Tesla-T4"]
    assert workers.asked == [("Tesla-T4",), ("NVIDIA-A100",)]
    assert counts.results == [CacheResult.MISS, CacheResult.PARTIAL]


async def test_card_with_another_budget_is_another_question() -> None:
    """The same product as a slice has its own estimate."""
    workers = FakeWorkers()
    pool = EstimatePool(workers)

    await names(pool, T4)
    await names(pool, device("Tesla-T4", budget=7 * GIB))

    assert len(workers.asked) == 2


async def test_same_spec_twice_at_once_is_traced_once() -> None:
    """Fifty reviews of one spec wait for one worker."""
    workers, counts = FakeWorkers(), Counts()
    workers.may_answer.clear()
    pool = EstimatePool(workers, watcher=counts)
    reviews = [asyncio.create_task(names(pool, T4)) for _ in range(50)]
    await asyncio.sleep(0)

    workers.may_answer.set()
    found = await asyncio.gather(*reviews)

    assert found == [["Tesla-T4"]] * 50
    assert workers.asked == [("Tesla-T4",)]
    assert counts.results == [CacheResult.MISS] + 49 * [CacheResult.JOINED]


async def test_late_answer_fills_the_cache() -> None:
    """A review that gives up does not end its estimate: the next review finds the answer."""
    workers = FakeWorkers()
    workers.may_answer.clear()
    pool = EstimatePool(workers)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await names(pool, T4)

    workers.may_answer.set()
    await names(pool, T4)
    asking = AskingPool(pool)
    await asking.estimate(job_spec(batch_size=8), [T4])

    assert workers.asked == [("Tesla-T4",)]
    assert asking.result is CacheResult.HIT


async def test_one_review_giving_up_leaves_the_others_their_answer() -> None:
    """Of two reviews waiting for one worker, the patient one is answered."""
    workers = FakeWorkers()
    workers.may_answer.clear()
    pool = EstimatePool(workers)
    hasty = asyncio.create_task(names(pool, T4))
    patient = asyncio.create_task(names(pool, T4))
    await asyncio.sleep(0)

    hasty.cancel()
    workers.may_answer.set()

    assert await patient == ["Tesla-T4"]


@pytest.mark.parametrize(
    ("failure", "seconds"),
    [
        (EstimateTimeoutError("too slow"), 120.0),
        (MemoryLimitError("too large"), 600.0),
        (TraceError("our bug"), 600.0),
        (EstimatorUnavailableError("the process did not start"), 1.0),
    ],
)
async def test_failure_of_ours_is_tried_again_after_its_time(
    failure: EstimatorError, seconds: float
) -> None:
    """Until then the failure is remembered, so that a job submitted in a loop costs nothing."""
    workers, clock = FakeWorkers(), Clock()
    pool = EstimatePool(workers, retention=Retention(), clock=clock)
    workers.failure = failure
    for clock.now in (0.0, seconds - 0.5):
        with pytest.raises(type(failure), match=failure.message):
            await names(pool, T4)
    assert len(workers.asked) == 1

    clock.now, workers.failure = seconds, None

    assert await names(pool, T4) == ["Tesla-T4"]
    assert len(workers.asked) == 2


@pytest.mark.parametrize(
    "failure",
    [
        SpecError([Problem(path="model.name", message="not known")], hint="see the list"),
        UnsupportedJobError(
            "not modelled", code=UnknownCode.OPTIMIZER, path="training.optimizer", hint="use adamw"
        ),
    ],
)
async def test_failure_of_the_spec_is_remembered_for_good_and_whole(
    failure: EstimatorError,
) -> None:
    """The same spec cannot fare better; code, path, problems and hint survive the cache."""
    workers, clock = FakeWorkers(), Clock()
    pool = EstimatePool(workers, clock=clock)
    workers.failure = failure

    found = []
    for clock.now in (0.0, 1e9):
        with pytest.raises(type(failure)) as caught:
            await names(pool, T4)
        found.append(caught.value)

    assert len(workers.asked) == 1
    assert found[1] is not failure
    assert [vars(error) for error in found] == [vars(failure)] * 2
    assert str(found[1]) == str(failure)


async def test_remembered_failure_keeps_nobody_elses_frames() -> None:
    """Each caller gets a failure of its own: the kept one does not hold a traceback."""
    workers = FakeWorkers()
    pool = EstimatePool(workers)
    workers.failure = TraceError("our bug")
    found = []
    for _ in range(3):
        with pytest.raises(TraceError) as caught:
            await names(pool, T4)
        found.append(caught.value)

    assert found[1] is not found[2]


async def test_fault_that_is_no_estimator_error_is_not_remembered() -> None:
    """A bug in the pool of workers reaches the handler, and the next review tries again."""
    workers = FakeWorkers()
    pool = EstimatePool(workers)
    workers.failure = ZeroDivisionError("bug")
    with pytest.raises(ZeroDivisionError):
        await names(pool, T4)

    workers.failure = None

    assert await names(pool, T4) == ["Tesla-T4"]


async def test_fits_are_remembered_like_estimates() -> None:
    """A denial repeated in a loop searches its way out once."""
    workers = FakeWorkers()
    pool = EstimatePool(workers)

    found = [await pool.fit(job_spec(), [T4]) for _ in range(3)]

    assert workers.fitted == [(256, 1)]
    assert found == [(fit(largest_batch=8),)] * 3


async def test_flood_of_new_specs_is_late_at_once() -> None:
    """Beyond what the workers can reach in time a review does not wait for nothing."""
    workers = FakeWorkers()
    workers.may_answer.clear()
    pool = EstimatePool(workers)
    waiting = [
        ask(pool, asker=str(size % 8), batch_size=size + 1)[1] for size in range(MAX_RUNNING)
    ]
    await asyncio.sleep(0)

    with pytest.raises(EstimateTimeoutError, match="128 other estimates are waiting"):
        await ask(pool, asker="8", batch_size=1000)[1]

    workers.may_answer.set()
    await asyncio.gather(*waiting)
    assert await names(pool, T4, batch_size=1000) == ["Tesla-T4"]


async def test_flood_of_one_asker_leaves_room_for_others() -> None:
    """One namespace cannot take every place in the queue."""
    workers = FakeWorkers()
    workers.may_answer.clear()
    pool = EstimatePool(workers)
    waiting = [ask(pool, asker="flood", batch_size=size + 1)[1] for size in range(MAX_ASKED)]
    await asyncio.sleep(0)

    with pytest.raises(EstimateTimeoutError):
        await ask(pool, asker="flood", batch_size=1000)[1]
    other = ask(pool, asker="other", batch_size=1000)[1]
    workers.may_answer.set()

    assert await other
    await asyncio.gather(*waiting)


def ask(
    pool: EstimatePool, *, asker: str, batch_size: int
) -> tuple[AskingPool, asyncio.Task[tuple[Estimate, ...]]]:
    """Return one review's view of the pool and its question."""
    asking = AskingPool(pool, asker=asker)
    spec = job_spec(batch_size=batch_size)
    return asking, asyncio.create_task(asking.estimate(spec, [T4]))


class OneByOne(FakeWorkers):
    """Notes the batch sizes in the order they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Note and answer."""
        spec = spec_of(job)
        self.batches.append(spec.input.batch_size)
        return await super().estimate(job, devices)


async def test_namespaces_are_served_in_rotation() -> None:
    """Whoever asks for many specs waits behind its own."""
    workers = OneByOne()
    workers.may_answer.clear()
    pool = EstimatePool(workers, max_concurrent=1)
    tasks = [ask(pool, asker="greedy", batch_size=size)[1] for size in (1, 2, 3, 4)]
    tasks += [ask(pool, asker="modest", batch_size=size)[1] for size in (10, 11)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert pool.num_waiting == 5

    workers.may_answer.set()
    await asyncio.gather(*tasks)

    assert workers.batches == [1, 2, 10, 3, 11, 4]


async def test_question_that_nobody_waits_for_is_dropped_unless_it_has_begun() -> None:
    """What runs goes on and fills the cache; what waits makes room."""
    workers = OneByOne()
    workers.may_answer.clear()
    pool = EstimatePool(workers, max_concurrent=1)
    begun, _ = ask(pool, asker="a", batch_size=1)
    waiting, task = ask(pool, asker="a", batch_size=2)
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    for review in (begun, waiting):
        review.leave()
    await asyncio.wait([task])
    workers.may_answer.set()
    again = await names(pool, T4, batch_size=1)

    assert task.cancelled()
    assert again == ["Tesla-T4"]
    assert workers.batches == [1]


async def test_question_is_kept_while_one_of_its_reviews_waits() -> None:
    """Of two reviews of one spec in the queue the patient one is answered."""
    workers = OneByOne()
    workers.may_answer.clear()
    pool = EstimatePool(workers, max_concurrent=1)
    ask(pool, asker="a", batch_size=1)
    hasty, _ = ask(pool, asker="a", batch_size=2)
    _, patient = ask(pool, asker="b", batch_size=2)
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    hasty.leave()
    workers.may_answer.set()

    assert await patient
    assert workers.batches == [1, 2]


async def test_question_dropped_in_this_moment_is_asked_anew() -> None:
    """A review that comes while a dropped question ends does not join it."""
    workers = OneByOne()
    workers.may_answer.clear()
    pool = EstimatePool(workers, max_concurrent=1)
    ask(pool, asker="a", batch_size=1)
    left, _ = ask(pool, asker="a", batch_size=2)
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    left.leave()
    _, fresh = ask(pool, asker="a", batch_size=2)
    workers.may_answer.set()

    assert await fresh


async def test_review_that_was_answered_asks_nothing_more() -> None:
    """A question left over from it starts no work."""
    workers = OneByOne()
    asking = AskingPool(EstimatePool(workers))
    asking.leave()

    with pytest.raises(EstimateTimeoutError):
        await asking.estimate(job_spec(), [T4])
    with pytest.raises(EstimateTimeoutError):
        await asking.fit(job_spec(), [T4])

    assert workers.batches == []


async def test_spec_that_times_out_again_is_remembered_twice_as_long() -> None:
    """120 s, 240 s, 480 s, then 600 s as any failure: it holds a worker ever more seldom."""
    workers, clock = FakeWorkers(), Clock()
    pool = EstimatePool(workers, clock=clock)
    workers.failure = EstimateTimeoutError("too slow")
    starts: list[float] = []
    for clock.now in range(0, 3000, 10):
        with pytest.raises(EstimateTimeoutError):
            await names(pool, T4)
        if len(workers.asked) > len(starts):
            starts.append(clock.now)

    assert starts == [0, 120, 120 + 240, 360 + 480, 840 + 600, 1440 + 600, 2040 + 600]


async def test_closing_ends_what_is_running() -> None:
    """Nothing is left behind on the loop."""
    workers = FakeWorkers()
    workers.may_answer.clear()
    pool = EstimatePool(workers)
    waiting = asyncio.create_task(names(pool, T4))
    await asyncio.sleep(0)

    await pool.close()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_one_review_reports_the_slowest_of_its_answers() -> None:
    """A hit after a miss is still a review that waited."""
    pool = EstimatePool(FakeWorkers())
    asking = AskingPool(pool)

    assert asking.result is None
    await asking.estimate(job_spec(), [T4])
    await asking.estimate(job_spec(), [T4])

    assert asking.result is CacheResult.MISS


async def test_what_is_remembered_is_had_without_asking() -> None:
    """All of it or nothing, counted as a hit; a failure is asked for as ever."""
    workers, counts = FakeWorkers(), Counts()
    pool = EstimatePool(workers, watcher=counts)
    asker = AskingPool(pool)
    spec = job_spec()

    assert asker.remembered(spec.digest(), (T4,)) is None
    found = await pool.estimate(spec, (T4,))
    assert asker.remembered(spec.digest(), (T4, A100)) is None
    assert asker.result is None
    assert asker.remembered(spec.digest(), (T4,)) == found
    assert asker.result is CacheResult.HIT
    assert counts.results == [CacheResult.MISS, CacheResult.HIT]

    workers.failure = TraceError("a fault")
    with pytest.raises(TraceError):
        await pool.estimate(spec, (A100,))
    assert asker.remembered(spec.digest(), (A100,)) is None

    asker.leave()
    assert asker.remembered(spec.digest(), (T4,)) is None
