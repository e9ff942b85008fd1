"""Whom the queue's duty leads to another flavor, and that it does so once."""

from __future__ import annotations

import pytest

from admission.controller.acting import Outcome
from admission.controller.kueue.moving import MOVES
from tests.admission.controller import objects
from tests.admission.controller.kueue.scene import (
    A10,
    CHECK,
    CLUSTER_QUEUE,
    PRODUCT,
    T4,
    WORKLOAD,
    QueueScene,
)
from tests.admission.controller.objects import JOB, steered
from tests.admission.controller.scene import MIDDLE
from tests.admission.steer.scene import MEMORY

STATUS = f"{WORKLOAD}/status"
LED_TO_A10 = [{"key": PRODUCT, "operator": "In", "values": ["NVIDIA-A10"]}]


async def test_another_flavor_holds_it_so_the_job_is_led_there_once() -> None:
    """Its terms first, then the Workload that was made without them; killed between, the same."""
    scene = QueueScene()
    scene.queue(MIDDLE, "t4")
    scene.cluster.refused["delete", WORKLOAD] = 503
    await scene.work(seconds=2)
    assert WORKLOAD in scene.cluster.objects
    scene.restart()
    del scene.cluster.refused["delete", WORKLOAD]

    await scene.work(seconds=5)

    assert scene.required == LED_TO_A10
    assert scene.job["metadata"]["annotations"][MOVES] == "1"
    assert WORKLOAD not in scene.cluster.objects
    assert scene.writes[-2:] == [("patch", JOB), ("delete", WORKLOAD)]
    assert scene.said.count(("train", "GpuMemoryMoved")) == 1
    message = next(e["message"] for e in scene.cluster.events if e["reason"] == "GpuMemoryMoved")
    assert message.startswith("Led to flavor a10: flavor t4 is too small: needs at least 20.0 GiB")

    scene.assign("a10", number=2)
    await scene.work(seconds=5)
    assert scene.answer[0] == "Ready"
    assert scene.writes.count(("patch", JOB)) == 1


class Killed(BaseException):
    """The controller's end, in the middle of a write."""


@pytest.mark.parametrize("writes", range(8))
async def test_killed_before_any_write_the_end_is_the_same(writes: int) -> None:
    """Which is after the one before it: every Event and every write comes once."""
    scene = QueueScene()
    scene.queue(MIDDLE, "t4")
    left = [writes]

    def killed(*_: str) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise Killed

    scene.cluster.before_write = killed
    try:
        await scene.work(seconds=5)
    except Killed:
        scene.restart()
        await scene.work(seconds=5)
    scene.assign("a10", number=2)  # by Kueue, of the job as it is
    try:
        await scene.work(seconds=5)
    except Killed:
        scene.restart()
        await scene.work(seconds=5)

    assert scene.answer[0] == "Ready"
    assert sorted(scene.writes) == sorted(
        [
            ("delete", WORKLOAD),
            ("patch", JOB),
            ("patch", STATUS),
            ("patch", f"{CHECK}/status"),
        ]
    )
    assert sorted(reason for _, reason in scene.said) == [
        "GpuMemoryCheckActive",
        "GpuMemoryChecked",
        "GpuMemoryMoved",
    ]


async def test_a_queue_that_does_not_follow_the_terms_is_no_loop() -> None:
    """The Workload was made of the very terms, and got the small flavor: let through, said."""
    scene = QueueScene()
    scene.queue(MIDDLE, "t4")
    await scene.work(seconds=5)
    scene.assign("t4", number=2)

    await scene.work(seconds=5)

    state, message = scene.answer
    assert state == "Ready"
    assert "against the job's terms" in message
    assert scene.writes.count(("delete", WORKLOAD)) == 1


async def test_flavors_are_told_apart_by_nodes_not_names() -> None:
    """Two flavors of one card are the same; the third leads elsewhere."""
    scene = QueueScene(flavors={"a10-like": T4, "cheap": T4, "t4": A10})
    scene.queue(MIDDLE, "a10-like")

    await scene.work(seconds=5)

    assert scene.required == LED_TO_A10


async def test_moves_are_capped() -> None:
    """By the annotation on the job: then it is let through, with a warning."""
    scene = QueueScene(most_moves=2)
    scene.queue(MIDDLE, "t4", notes={MOVES: "2"})

    await scene.work(seconds=5)

    state, message = scene.answer
    assert state == "Ready"
    assert "it was moved 2 times (controller.mostMoves)" in message
    assert scene.required == []


async def test_a_job_that_wants_no_steering_is_not_moved() -> None:
    """Its label says `off`."""
    scene = QueueScene()
    scene.queue(MIDDLE, "t4")
    scene.job["metadata"]["labels"]["vramgate.dev/steer"] = "off"

    await scene.work(seconds=5)

    state, message = scene.answer
    assert state == "Ready"
    assert "vramgate.dev/steer is off" in message


async def test_a_refused_move_ends_with_its_time() -> None:
    """The kind's own rules or a role say no: the queue does not stand still for ever."""
    scene = QueueScene(gate_seconds=60.0)
    scene.queue(MIDDLE, "t4")
    scene.cluster.refused["patch", JOB] = 422

    await scene.work(seconds=120)

    state, message = scene.answer
    assert state == "Ready"
    assert "It could not be moved in time." in message
    assert WORKLOAD in scene.cluster.objects


async def test_a_job_that_runs_still_is_not_moved_yet() -> None:
    """Kueue stops it first."""
    scene = QueueScene()
    scene.queue(MIDDLE, "t4")
    scene.job["spec"]["suspend"] = False

    await scene.work(seconds=3)

    assert scene.answer[0] == "Pending"
    assert ("patch", JOB) not in scene.writes
    assert Outcome.REFUSED not in scene.outcomes
    assert ("train", "GpuMemoryMoved") not in scene.said


async def test_a_queue_without_quota_for_it_is_no_way_out() -> None:
    """A flavor of which the queue may never give as many."""
    scene = QueueScene()
    spec = scene.cluster.objects[CLUSTER_QUEUE]["spec"]
    spec["resourceGroups"][0]["flavors"][1]["resources"][0]["nominalQuota"] = "0"
    scene.queue(MIDDLE, "t4")

    await scene.work(seconds=5)

    assert scene.answer[0] == "Rejected"


async def test_terms_of_memory_do_not_hide_the_small_flavor() -> None:
    """The webhook wrote them; the flavors say products, and Kueue gave the first."""
    scene = QueueScene()
    made = await steered(scene, objects.job(MIDDLE, suspend=True))
    scene.queue(MIDDLE, "t4")
    scene.job["spec"], scene.job["metadata"]["annotations"] = (
        made["spec"],
        made["metadata"]["annotations"],
    )
    scene.assign("t4")

    await scene.work(seconds=5)

    assert [each["key"] for each in scene.required] == [MEMORY, PRODUCT]
    assert scene.said.count(("train", "GpuMemoryMoved")) == 1


@pytest.mark.parametrize("key", [PRODUCT, "nvidia.com/gpu.compute.major"])
async def test_a_flavor_that_its_own_terms_close_is_no_way_out(key: str) -> None:
    """Told by what Kueue compares, or by the nodes: not unknown, and nothing to move to."""
    scene = QueueScene()
    scene.queue(MIDDLE, "t4")
    value = {PRODUCT: "Tesla-T4"}.get(key, "7")
    scene.job["spec"]["template"]["spec"]["nodeSelector"] = {key: value}
    scene.assign("t4")

    await scene.work(seconds=5)

    assert scene.answer[0] == "Rejected"
    assert "Tesla-T4" in scene.answer[1]


async def test_an_unknown_flavor_that_kueue_would_not_give_it_spares_nothing() -> None:
    """Its pods choose another card by the very label that the flavor has."""
    scene = QueueScene(flavors={"t4": T4, "b200": {PRODUCT: "NVIDIA-B200"}})
    scene.queue(MIDDLE, "t4")
    scene.job["spec"]["template"]["spec"]["nodeSelector"] = dict(T4)
    scene.assign("t4")

    await scene.work(seconds=5)

    assert scene.answer[0] == "Rejected"


async def test_a_queue_that_counts_something_else_than_gpus_has_flavors_too() -> None:
    """Gigabytes of them: the flavor of that resource says which cards."""
    scene = QueueScene()
    scene.queue(MIDDLE, "t4")
    for place in (scene.cluster.objects[CLUSTER_QUEUE]["spec"]["resourceGroups"][0],):
        place["coveredResources"] = ["example.com/total-gpumem", "cpu"]
    status = scene.cluster.objects[WORKLOAD]["status"]
    (assigned,) = status["admission"]["podSetAssignments"]
    assigned["flavors"] = {"cpu": "t4", "example.com/total-gpumem": "t4"}

    await scene.work(seconds=5)

    assert scene.required == LED_TO_A10


@pytest.mark.parametrize("asks", [True, False])
async def test_a_container_that_kueue_has_not_as_it_is_goes_where_gpus_are_asked_for(
    asks: bool,
) -> None:
    """Its controller may have changed it; where no GPU is asked for, it is said to be unjudged."""
    scene = QueueScene()
    scene.queue(MIDDLE, "t4")
    (pod_set,) = scene.cluster.objects[WORKLOAD]["spec"]["podSets"]
    container = pod_set["template"]["spec"]["containers"][0]
    container["image"] = "example.com/other:1"
    if not asks:
        container["resources"] = {}

    await scene.work(seconds=5)

    if asks:
        assert scene.required == LED_TO_A10
        return

    state, message = scene.answer
    assert state == "Ready"
    assert "its containers are not those of the pod sets main" in message
