"""More jobs than the workers can take: one estimate a spec, room for everybody, late by policy."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from admission.answers import MAX_ASKED, MAX_RUNNING, ShedError
from admission.estimates import AskingPool, EstimatePool
from admission.review import Route
from estimator.device import Device
from estimator.errors import EstimateTimeoutError
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.units import GIB
from estimator.workers.api import Job, spec_of
from tests.admission.test_handler import Bench, job, review_of
from tests.builders import device, estimate, fit, job_spec

T4 = device("Tesla-T4")
GANG = 400


class Slow:
    """Answers each batch size once it may."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self._may = defaultdict[int, asyncio.Event](asyncio.Event)

    def let(self, *batch_sizes: int) -> None:
        """Let these be answered."""
        for size in batch_sizes:
            self._may[size].set()

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device, once it may be."""
        spec = spec_of(job)
        self.begun.append(spec.input.batch_size)
        await self._may[spec.input.batch_size].wait()
        return tuple(estimate(least=GIB, card=card, spec=spec) for card in devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return one fit a device."""
        return tuple(fit(largest_batch=spec.input.batch_size) for _ in devices)


Asking = asyncio.Task[tuple[Estimate, ...]]


class Crowd:
    """Namespaces that ask a pool of two workers."""

    def __init__(self) -> None:
        self.workers = Slow()
        self.pool = EstimatePool(self.workers, max_concurrent=2)

    async def asks(self, namespace: str, *batch_sizes: int) -> list[Asking]:
        """Let *namespace* ask about each of them, each in a review of its own."""
        tasks = [
            asyncio.create_task(
                AskingPool(self.pool, asker=namespace).estimate(job_spec(batch_size=size), (T4,))
            )
            for size in batch_sizes
        ]
        await settled()
        return tasks


async def settled() -> None:
    """Let everything go on that need not wait."""
    for _ in range(10):
        await asyncio.sleep(0)


def members(number: int) -> dict[str, Any]:
    """Return the review of one pod's worth of a gang: its own name and index, one spec."""
    obj = job(labels={"index": str(number)})
    obj["metadata"]["name"] = f"train-{number}"
    return review_of(obj, uid=str(number))


async def test_a_gang_at_once_is_one_estimate_and_nobody_is_late() -> None:
    """400 at once on both routes, while the one estimate takes its time."""
    bench = Bench(max_concurrent=2)
    bench.workers.may_answer.clear()
    asking = [
        asyncio.create_task(bench.response(members(number), timeout_text="30s", route=route))
        for number in range(GANG)
        for route in Route
    ]
    await settled()

    bench.workers.may_answer.set()
    answers = await asyncio.gather(*asking)

    assert bench.workers.num_asked == 1
    assert {answer["auditAnnotations"]["verdict"] for answer in answers} == {"fits"}
    assert [answer["uid"] for answer in answers] == [
        str(number) for number in range(GANG) for _ in Route
    ]


async def test_long_estimates_of_one_namespace_leave_a_worker_to_others() -> None:
    """It has two that never end and thirty more; another's is answered at once."""
    crowd = Crowd()
    await crowd.asks("flood", *range(1, MAX_ASKED + 1))
    assert crowd.workers.begun == [1]

    (other,) = await crowd.asks("other", 1000)

    assert crowd.workers.begun == [1, 1000]
    crowd.workers.let(1000)
    await other
    await settled()
    assert crowd.workers.begun == [1, 1000]
    await crowd.pool.close()


async def test_no_number_of_namespaces_takes_the_place_of_another() -> None:
    """All places are taken by four; the fifth still has one, and the longest line is shorter."""
    crowd = Crowd()
    floods = [
        await crowd.asks(name, *range(100 * number, 100 * number + MAX_ASKED))
        for number, name in enumerate("abcd", start=1)
    ]
    assert crowd.pool.num_waiting == MAX_RUNNING - 2

    (other,) = await crowd.asks("other", 1000)

    refused = [task for flood in floods for task in flood if task.done()]
    assert [type(task.exception()) for task in refused] == [ShedError]
    assert crowd.pool.num_waiting == MAX_RUNNING - 2
    assert not other.done()
    await crowd.pool.close()


async def test_what_was_shed_is_estimated_when_it_is_asked_again() -> None:
    """Nothing was found out about it, so nothing is remembered."""
    crowd = Crowd()
    flood = await crowd.asks("flood", *range(1, MAX_ASKED + 1))
    (shed,) = await crowd.asks("flood", 500)
    assert isinstance(shed.exception(), EstimateTimeoutError)

    crowd.workers.let(*range(1, MAX_ASKED + 1), 500)
    await asyncio.gather(*flood)
    (again,) = await crowd.asks("flood", 500)

    assert len(await again) == 1
    assert crowd.workers.begun.count(500) == 1
    await crowd.pool.close()


async def test_who_asks_what_another_waits_for_does_not_wait_in_its_line() -> None:
    """The estimate begins in the first turn of any who asked for it, and only once."""
    crowd = Crowd()
    flood = await crowd.asks("flood", *range(1, MAX_ASKED + 1))

    (other,) = await crowd.asks("other", MAX_ASKED)

    assert crowd.workers.begun == [1, MAX_ASKED]
    crowd.workers.let(*range(1, MAX_ASKED + 1))
    await asyncio.gather(other, *flood)
    assert sorted(crowd.workers.begun) == list(range(1, MAX_ASKED + 1))
    assert crowd.pool.num_waiting == 0


async def test_no_turn_is_lost_to_questions_that_several_asked() -> None:
    """Afterwards two namespaces have two workers, as before."""
    crowd = Crowd()
    for size in range(1, 6):
        asked = [task for name in "abc" for task in await crowd.asks(name, size, size + 100)]
        crowd.workers.let(size, size + 100)
        await asyncio.gather(*asked)

    await crowd.asks("a", 1000)
    await crowd.asks("b", 1001)

    assert crowd.workers.begun[-2:] == [1000, 1001]
    await crowd.pool.close()


async def test_a_review_that_is_shed_is_let_through_with_a_warning() -> None:
    """Late, as `policy.onLate` says: never denied, never an error, and at once."""
    bench = Bench(max_concurrent=2)
    bench.workers.may_answer.clear()
    flood = [
        asyncio.create_task(bench.response(review_of(job(batch_size=size)), timeout_text="30s"))
        for size in range(1, MAX_ASKED + 1)
    ]
    await settled()

    response = await bench.response(review_of(job(batch_size=1000)), timeout_text="30s")

    assert response["allowed"]
    assert response["auditAnnotations"]["reason"] == "late"
    assert len(response["warnings"]) >= 1
    assert not any(task.done() for task in flood)
    bench.workers.may_answer.set()
    await asyncio.gather(*flood)
