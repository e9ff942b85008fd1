"""Pods on cards that cannot hold them: told always, moved where the settings want it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from admission.controller.acts import Cause, Misplaced
from admission.controller.moving import MOVING, Moving, Step
from admission.controller_settings import Moved
from tests.admission.controller.cluster import START
from tests.admission.controller.dead import T4_NODE, affinity, began, ended, running_job
from tests.admission.controller.objects import JOB, POD, pod
from tests.admission.controller.scene import HUGE, MIDDLE, SMALL, Scene, owner
from tests.admission.steer.scene import A10, T4, nodes

WRONG, MOVED = "GpuMemoryWrongCard", "GpuMemoryMoved"


def placed(
    scene: Scene, batch_size: int, *, phase: str = "Running", **notes: str
) -> dict[str, Any]:
    """Have a Job whose pod is on a T4, as the webhook never saw it."""
    scene.cluster.put(JOB, running_job(batch_size))
    made = pod(owners=owner("Job", "batch/v1", JOB, "train"), nodeName=T4_NODE, notes=notes)
    made["status"] = {"phase": phase}
    scene.cluster.put(POD, made)
    return made


async def test_it_is_told_and_counted_and_no_more() -> None:
    """By default running pods are not stopped."""
    scene = began()
    placed(scene, MIDDLE)

    await scene.work(seconds=5)
    await scene.work(seconds=5)

    assert scene.said == [("train", WRONG)]
    assert scene.cluster.events[0]["message"] == (
        "pod train-0 is on Tesla-T4, which gives it 14.5 GiB; it needs at least 20.0 GiB; next: "
        "NVIDIA-A10 would hold it (controller.moves has no `running`)"
    )
    assert scene.counted == [Misplaced(state="running")]
    assert scene.writes == []


async def test_a_pod_that_is_listed_before_its_job_is_judged_by_its_job() -> None:
    """The pod itself says nothing of what it trains."""
    scene = began()
    made = placed(scene, MIDDLE)
    del scene.cluster.objects[POD], scene.cluster.objects[JOB]
    scene.cluster.put(POD, made)
    scene.cluster.put(JOB, running_job(MIDDLE))

    await scene.work(seconds=1)

    assert scene.said == [("train", WRONG)]


async def test_it_is_moved_where_the_settings_want_it() -> None:
    """Suspended, steered hard, resumed."""
    scene = began(moves=(Moved.RUNNING,), policy={"mode": "warn"})
    placed(scene, MIDDLE)

    await scene.work(seconds=2)
    del scene.cluster.objects[POD]
    ended(scene)
    await scene.work(seconds=2)

    obj = scene.cluster.objects[JOB]
    assert obj["spec"]["suspend"] is False
    assert affinity(obj)
    assert [reason for _, reason in scene.said] == [WRONG, MOVED, MOVED]
    assert scene.counted == [Misplaced(state="running"), Cause.WRONG_CARD]


async def test_where_no_card_holds_it_nothing_is_moved() -> None:
    """It would be stopped for nothing."""
    scene = began(moves=(Moved.RUNNING,))
    placed(scene, HUGE)

    await scene.work(seconds=5)

    assert scene.said == [("train", WRONG)]
    assert "no card that it may use holds it" in scene.cluster.events[0]["message"]
    assert scene.writes == []


async def test_what_fits_is_nobodys_business() -> None:
    """Judged once, though nobody ever wrote a verdict on it."""
    scene = began(moves=tuple(Moved))
    made = placed(scene, SMALL)
    await scene.work(seconds=1)
    asked = len(scene.cluster.asked)

    scene.cluster.put(POD, {**made, "status": {"phase": "Running", "message": "news"}})
    await scene.work(seconds=1)

    assert scene.cluster.writes == []
    assert len(scene.cluster.asked) == asked


async def test_notes_are_a_filter_and_no_truth() -> None:
    """Somebody wrote that it is large."""
    scene = began(moves=tuple(Moved))
    notes = {"vramgate.dev/least-bytes": str(1 << 45), "vramgate.dev/verdict": "oom"}
    placed(scene, SMALL, **notes)

    await scene.work(seconds=1)

    assert scene.cluster.writes == []


async def test_a_node_that_changed_is_noticed() -> None:
    """Its pods were right before."""
    scene = began()
    t4 = (T4[0], 30720, T4[2])
    scene.cards.become(*nodes((t4, A10)))
    placed(
        scene, MIDDLE, **{"vramgate.dev/least-bytes": str(20 << 30), "vramgate.dev/verdict": "fits"}
    )
    await scene.work(seconds=1)
    assert scene.said == []

    scene.other_cards(*nodes((T4, A10)))
    await scene.work(seconds=1)

    assert scene.said == [("train", WRONG)]


@pytest.mark.parametrize("count", [3, 4])
async def test_it_is_not_moved_for_ever(count: int) -> None:
    """After `mostMoves` people are told."""
    scene = began(moves=(Moved.RUNNING,), most_moves=3)
    placed(scene, MIDDLE)
    since = START - timedelta(days=1)
    move = Moving(step=Step.DONE, cause=Cause.WRONG_CARD, since=since, count=count)
    scene.cluster.objects[JOB]["metadata"]["annotations"][MOVING] = move.text()

    await scene.work(seconds=5)

    assert "it was moved 3 times, the most" in scene.cluster.events[0]["message"]
    assert scene.writes == []
