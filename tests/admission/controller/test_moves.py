"""Pods that are deleted instead of their job suspended, and the next run of a CronJob."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from admission.controller.acts import Cause
from admission.controller.moving import MOVING, Moving, Step
from admission.learning.deaths import KEY, read_deaths
from tests.admission.controller.cluster import START
from tests.admission.controller.dead import (
    A10_NODE,
    affinity,
    began,
    dead_pod,
    died,
    ended,
    running_job,
)
from tests.admission.controller.objects import CRONJOB, JOB, POD, container, cronjob, pod
from tests.admission.controller.scene import NAMESPACE, SMALL, Scene, owner, spec_note

OTHER = POD.replace("train-0", "train-1")
LEARNED = f"/api/v1/namespaces/{NAMESPACE}/configmaps/vramgate-learned"


def in_place(scene: Scene) -> None:
    """Have a Job of two pods: one dies again and again on a T4, the other runs on an A10."""
    scene.cluster.put(JOB, running_job(SMALL, backoffLimit=6, parallelism=2))
    dying = dead_pod()
    ended = dying["status"]["containerStatuses"][0]["state"]
    status = {"name": "train", "restartCount": 1, "state": {"running": {}}, "lastState": ended}
    dying["spec"]["restartPolicy"] = "OnFailure"
    dying["status"] = {"phase": "Running", "containerStatuses": [status]}
    scene.cluster.put(POD, dying)
    well = pod(owners=owner("Job", "batch/v1", JOB, "train"), nodeName=A10_NODE)
    well["metadata"]["name"] = "train-1"
    well["status"] = {"phase": "Running"}
    scene.cluster.put(OTHER, well)


async def test_a_job_with_pods_that_run_well_loses_only_the_one_that_dies() -> None:
    """It is made anew, and steered as it is created."""
    scene = began()
    in_place(scene)

    await scene.work(seconds=3)

    assert POD not in scene.cluster.objects
    assert OTHER in scene.cluster.objects
    assert "suspend" not in scene.cluster.objects[JOB]["spec"]
    moving = orjson.loads(scene.cluster.objects[JOB]["metadata"]["annotations"][MOVING])
    assert (moving["step"], moving["count"]) == ("done", 1)
    assert scene.writes.count(("delete", POD)) == 1
    assert [reason for _, reason in scene.said] == ["GpuOutOfMemory", "GpuMemoryMoved"]


async def test_every_webhook_hears_of_it_before_a_pod_is_deleted() -> None:
    """What is learnt is written first, and given half a second."""
    scene = began()
    in_place(scene)

    await scene.work(seconds=0.2)
    assert LEARNED in scene.cluster.objects
    assert POD in scene.cluster.objects

    await scene.work(seconds=3)
    assert POD not in scene.cluster.objects


def with_run(scene: Scene) -> dict[str, Any]:
    """Have a CronJob whose last run died."""
    made = cronjob(SMALL)
    scene.cluster.put(CRONJOB, made)
    run = running_job(None, backoffLimit=0)
    run["metadata"]["annotations"] = {}
    run["metadata"]["ownerReferences"] = owner("CronJob", "batch/v1", CRONJOB, "train")
    scene.cluster.put(JOB, run)
    scene.cluster.put(POD, dead_pod())
    return dict(made)


async def test_the_next_run_of_a_cronjob_is_steered() -> None:
    """Its template may change at any time; the run that failed is left."""
    scene = began()
    with_run(scene)

    await scene.work(seconds=3)

    template = scene.cluster.objects[CRONJOB]["spec"]["jobTemplate"]["spec"]["template"]
    assert "affinity" in template["spec"]
    assert [reason for _, reason in scene.said] == ["GpuOutOfMemory", "GpuMemorySteered"]
    assert "its next run is steered to" in scene.cluster.events[0]["message"]
    assert ("patch", JOB) not in scene.writes


async def test_a_run_with_a_retry_left_is_moved_itself() -> None:
    """And the next ones are steered as well."""
    scene = began()
    with_run(scene)
    scene.cluster.objects[JOB]["spec"]["backoffLimit"] = 6
    scene.cluster.objects[JOB]["metadata"]["annotations"] = spec_note(SMALL)

    for _ in range(4):
        await scene.work(seconds=1)
        ended(scene)

    assert affinity(scene.cluster.objects[JOB])
    assert scene.cluster.objects[JOB]["spec"]["suspend"] is False
    template = scene.cluster.objects[CRONJOB]["spec"]["jobTemplate"]["spec"]["template"]
    assert "affinity" in template["spec"]


async def test_what_somebody_elses_controller_has_is_not_suspended() -> None:
    """It would be resumed at once, or worse."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)
    reference = owner("Sweep", "example.com/v1", "/sweeps/a", "a")
    scene.cluster.objects[JOB]["metadata"]["ownerReferences"] = reference

    await scene.work(seconds=3)

    assert "suspend" not in scene.cluster.objects[JOB]["spec"]
    assert "its next pod is steered to" in scene.cluster.events[0]["message"]


async def test_a_run_is_remembered_by_all_that_it_belonged_to() -> None:
    """A pod of the next run knows only its Job."""
    scene = began()
    with_run(scene)

    await scene.work()

    (kept,) = read_deaths(scene.cluster.objects[LEARNED]["data"][KEY])
    assert kept.names == ("Job.batch/train", "CronJob.batch/train")
    assert kept.floor.container == container()["name"]


async def test_an_annotation_makes_us_do_nothing_that_the_settings_do_not_allow() -> None:
    """Whoever may write the job may write that too."""
    scene = began(moves=())
    move = Moving(step=Step.WANTED, cause=Cause.OUT_OF_MEMORY, since=START, count=1)
    scene.cluster.put(JOB, running_job(SMALL, notes={MOVING: move.text()}))

    await scene.work(seconds=3)

    assert "suspend" not in scene.cluster.objects[JOB]["spec"]
    assert "the settings want no such move" in scene.cluster.events[0]["message"]


async def test_a_suspended_job_that_waits_for_an_estimate_keeps_no_other_waiting() -> None:
    """Its look is over soon; and once the estimate is there it is resumed, steered."""
    scene = began()
    scene.workers.may_answer.clear()
    died(scene, SMALL, backoffLimit=6)
    await scene.work(seconds=1)
    ended(scene)
    assert scene.cluster.objects[JOB]["spec"]["suspend"] is True

    began_at = asyncio.get_running_loop().time()
    await scene.work(seconds=0)
    assert asyncio.get_running_loop().time() - began_at < 10

    scene.workers.may_answer.set()
    await scene.work(seconds=3)
    assert affinity(scene.cluster.objects[JOB])
    assert scene.cluster.objects[JOB]["spec"]["suspend"] is False
