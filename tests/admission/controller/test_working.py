"""Duties at work: asked, carried out, and none in the way of another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from admission.controller.acting import Acting, Outcome
from admission.controller.acts import NOTHING, Act, Look, Reason, Tell
from admission.controller.duty import Add, Quiet
from admission.controller.pods import PodView
from admission.controller.refs import Discovery
from admission.controller.working import WORKERS, Working
from admission.errors import ClusterError
from tests.admission.controller.cluster import Cluster
from tests.admission.controller.test_acting import JOB, REF
from tests.admission.controller.test_store import kept, pod


class Says(Quiet):
    """A duty that looks at every pod and says what it is told to."""

    def __init__(self, name: str, *looks: Look | Exception) -> None:
        self.name = name
        self.looked: list[str] = []
        self._looks = list(looks)
        self.idle = asyncio.Event()

    def pod_changed(self, pod: PodView, add: Add) -> None:
        """Look at it at once."""
        add(pod.key, 0.0)

    async def look(self, key: str) -> Look:
        """Say the next thing."""
        self.looked.append(key)
        look = self._looks.pop(0) if self._looks else NOTHING
        if not self._looks:
            self.idle.set()
        if isinstance(look, Exception):
            raise look
        return look


ACT = Act(tell=Tell(about=REF, reason=Reason.STEERED, note="steered"))


@pytest.fixture
def cluster() -> Cluster:
    """Have one Job."""
    made = Cluster()
    made.put(JOB, {"metadata": {"name": "train", "namespace": "team"}})
    return made


async def worked(
    duties: tuple[Says, ...], cluster: Cluster, *, may_act: bool = True
) -> list[tuple[str, Outcome]]:
    """Tell *duties* of one pod, wait until each has said all, and return what was done."""
    objects: Any = cluster
    counted: list[tuple[str, Outcome]] = []
    working = Working(
        duties,
        Acting(objects, Discovery(objects)),
        may_act=lambda: may_act,
        count=lambda name, outcome: counted.append((name, outcome)),
    )
    working.pod_changed(PodView(kept(pod())))
    task = asyncio.create_task(working.run())
    try:
        async with asyncio.timeout(20):
            for duty in duties:
                await duty.idle.wait()
            while working.length > sum(1 for duty in duties if not duty.idle.is_set()):
                if not may_act:
                    break
                await asyncio.sleep(0.01)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return counted


async def test_what_a_duty_wants_is_done(cluster: Cluster) -> None:
    """And counted by the duty's name."""
    duty = Says("stuck", Look(acts=(ACT,)))

    assert await worked((duty,), cluster) == [("stuck", Outcome.DONE)]
    assert duty.looked == ["team/train-0"]
    assert len(cluster.events) == 1


async def test_a_duty_that_fails_looks_again_and_stops_no_other(cluster: Cluster) -> None:
    """Our own fault is logged with its traceback, an API server that is away is not."""
    broken = Says("broken", KeyError("x"), ClusterError(None), Look(acts=(ACT,)))
    other = Says("other", NOTHING)

    with capture_logs() as logs:
        await worked((broken, other), cluster)

    assert len(broken.looked) == 3
    assert other.looked == ["team/train-0"]
    assert len(cluster.events) == 1
    assert [log["log_level"] for log in logs if "failed" in log["event"]] == ["error", "warning"]


async def test_nothing_is_done_without_the_lease(cluster: Cluster) -> None:
    """A controller that may have been taken over from keeps its hands still."""
    duty = Says("stuck", Look(acts=(ACT,)))

    assert await worked((duty,), cluster, may_act=False) == []
    assert cluster.events == []


async def test_a_look_that_wants_another_gets_it(cluster: Cluster) -> None:
    """Deadlines and back-off are a duty's own."""
    duty = Says("late", Look(again_seconds=0.01), Look(again_seconds=0.01), NOTHING)

    await worked((duty,), cluster)

    assert duty.looked == ["team/train-0"] * 3


class Waits(Says):
    """A duty whose looks wait for an estimate that does not come."""

    async def look(self, key: str) -> Look:
        """Never say anything."""
        self.looked.append(key)
        if len(self.looked) == WORKERS:
            self.idle.set()
        await asyncio.Event().wait()
        return NOTHING


async def test_looks_that_wait_hold_up_no_other_duty(cluster: Cluster) -> None:
    """A death is acted on at once, whatever else is being estimated."""
    objects: Any = cluster
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def heard(*_: str) -> None:
        loop.call_soon_threadsafe(told.set)

    cluster.before_write = heard
    waits, acts = Waits("estimating"), Says("deaths", Look(acts=(ACT,)))
    working = Working((waits, acts), Acting(objects, Discovery(objects)), may_act=lambda: True)
    task = asyncio.create_task(working.run())
    try:
        async with asyncio.timeout(20):
            for index in range(50):
                waits.pod_changed(PodView(kept(pod(f"train-{index}"))), working._adds["estimating"])
            await waits.idle.wait()
            acts.pod_changed(PodView(kept(pod())), working._adds["deaths"])
            await told.wait()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert len(waits.looked) == WORKERS
