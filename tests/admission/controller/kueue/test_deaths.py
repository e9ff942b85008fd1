"""What the queue's duty makes of a death: back to the queue, and on to a larger flavor."""

from __future__ import annotations

from typing import Any

from admission.controller.kueue.moving import LED
from admission.floor import Floor
from admission.learning.fingerprint import fingerprint
from admission.learning.lesson import Lesson
from admission.workloads import read_workload
from estimator.units import GIB
from tests.admission.controller.kueue.scene import (
    PRODUCT,
    T4,
    WORKLOAD,
    QueueScene,
)
from tests.admission.controller.objects import JOB
from tests.admission.controller.scene import SMALL

STATUS = f"{WORKLOAD}/status"
LED_TO_A10 = [{"key": PRODUCT, "operator": "In", "values": ["NVIDIA-A10"]}]


async def test_a_death_before_the_controller_came_is_seen() -> None:
    """The job is listed first, its Workload after it."""
    scene = QueueScene()
    scene.queue(SMALL, "t4")
    scene.cluster.put(JOB, died(scene.job, gave=15 * GIB))
    scene.assign("t4", state="Ready")

    await scene.work(seconds=5)

    assert scene.check["state"] == "Retry"


async def test_a_job_that_went_back_as_often_as_it_may_stays() -> None:
    """Nothing came of it: no loop between queue and card."""
    scene = QueueScene(most_moves=2)
    scene.queue(SMALL, "t4")
    scene.cluster.put(JOB, died(scene.job, gave=15 * GIB))
    scene.assign("t4", state="Ready")
    scene.check["retryCount"] = 2

    await scene.work(seconds=5)

    assert scene.check["state"] == "Ready"


async def test_a_death_sends_it_back_to_the_queue_and_on_to_a_larger_flavor() -> None:
    """Retry with a delay, then the terms: nothing estimated says that the card is too small."""
    scene = QueueScene(move_pause_seconds=30.0)
    scene.queue(SMALL, "t4")
    scene.assign("t4", state="Ready")
    started = scene.job
    started["spec"]["suspend"] = False
    started["spec"]["template"]["spec"]["nodeSelector"] = dict(T4)  # by Kueue
    scene.cluster.put(JOB, started)
    await scene.work(seconds=1)
    assert ("patch", STATUS) not in scene.writes

    scene.cluster.put(JOB, died(scene.job, gave=15 * GIB))
    await scene.work(seconds=5)
    scene.restart()
    await scene.work(seconds=5)

    assert scene.check["state"] == "Retry"
    assert scene.check["requeueAfterSeconds"] == 30
    assert scene.writes.count(("patch", STATUS)) == 1
    assert scene.said.count(("train", "GpuMemoryRequeued")) == 1

    back = scene.job
    back["spec"]["suspend"] = True
    del back["spec"]["template"]["spec"]["nodeSelector"]
    scene.cluster.put(JOB, back)
    scene.assign("t4")
    await scene.work(seconds=5)
    assert scene.required == LED_TO_A10
    assert LED in scene.job["metadata"]["annotations"]


async def test_a_death_of_what_nobody_can_read_moves_it_too() -> None:
    """A card that gave no more is too small, whatever it is; a larger one is worth trying."""
    scene = QueueScene()
    scene.queue(None, "t4")
    scene.cluster.put(JOB, died(scene.job, gave=15 * GIB))

    await scene.work(seconds=5)

    assert scene.required == LED_TO_A10


async def test_a_death_rejects_nothing() -> None:
    """It may have died of something that is mended: on the largest card it stays."""
    scene = QueueScene()
    scene.queue(SMALL, "a10")
    scene.cluster.put(JOB, died(scene.job, gave=22 * GIB))

    await scene.work(seconds=5)

    state, message = scene.answer
    assert state == "Ready"
    assert "A pod of it died of lack of GPU memory" in message


def died(job: dict[str, Any], *, gave: int) -> dict[str, Any]:
    """Return *job* with what a death of it taught."""
    workload = read_workload(job)
    (unit,) = workload.units
    floor = Floor(
        container=unit.container, nbytes=gave + 1, gave=gave, card="card", when="2030-01-01"
    )
    lesson = Lesson(floor=floor, fingerprint=fingerprint(unit, workload))
    metadata = job["metadata"]
    return {
        **job,
        "metadata": {
            **metadata,
            "annotations": {**metadata["annotations"], **lesson.annotations()},
        },
    }
