"""Suspended workloads are steered while that is allowed, and only when it changes something."""

from __future__ import annotations

from typing import Any

import pytest

from admission.controller.duties.suspended import Suspended
from admission.steer.terms import RECORD
from tests.admission.controller.objects import JOB, PYTORCHJOB, job, pytorchjob, steered
from tests.admission.controller.scene import HUGE, MIDDLE, Scene
from tests.admission.steer.scene import A10, A100, T4, nodes


def began(**scene: Any) -> Scene:
    """Return a scene with the duty at work."""
    made = Scene(**scene)
    made.begin(Suspended(made.parts))
    return made


def record_of(obj: dict[str, Any]) -> str | None:
    """Return what the pod template of a Job says that we added."""
    template = obj["spec"]["template"]
    found: str | None = template.get("metadata", {}).get("annotations", {}).get(RECORD)
    return found


async def test_a_suspended_job_without_terms_gets_them_once() -> None:
    """It stays suspended, and a second look, of a new controller too, writes nothing."""
    scene = began()
    scene.cluster.put(JOB, job(MIDDLE, suspend=True))

    await scene.work(seconds=10)
    scene.begin(Suspended(scene.parts))
    await scene.work(seconds=10)

    obj = scene.cluster.objects[JOB]
    assert obj["spec"]["suspend"] is True
    assert record_of(obj)
    assert scene.writes == [("patch", JOB)]
    assert scene.said == [("train", "GpuMemorySteered")]
    assert "when whoever suspended it resumes it" in scene.cluster.events[0]["message"]


async def test_a_pytorchjob_is_held_by_its_run_policy() -> None:
    """The training operator writes `suspend` elsewhere."""
    scene = began()
    made = pytorchjob(MIDDLE)
    made["spec"]["runPolicy"] = {"suspend": True}
    scene.cluster.put(PYTORCHJOB, made)

    await scene.work(seconds=10)

    replicas = scene.cluster.objects[PYTORCHJOB]["spec"]["pytorchReplicaSpecs"]
    assert RECORD in replicas["Master"]["template"]["metadata"]["annotations"]
    assert scene.writes == [("patch", PYTORCHJOB)]


async def test_terms_follow_the_cards_that_come_and_go() -> None:
    """Each change is written once, and told."""
    scene = began()
    scene.cluster.put(JOB, await steered(scene, job(MIDDLE, suspend=True)))
    await scene.work()
    assert scene.writes == []
    first = record_of(scene.cluster.objects[JOB])

    scene.other_cards(*nodes((T4, A100)))
    await scene.work()
    second = record_of(scene.cluster.objects[JOB])
    scene.other_cards(*nodes((T4, A10, A100)))
    await scene.work()
    third = record_of(scene.cluster.objects[JOB])

    assert len({first, second, third}) == 3
    assert scene.writes == [("patch", JOB)] * 2
    assert scene.said == [("train", "GpuMemorySteered")] * 2


async def test_terms_stay_while_no_card_holds_it() -> None:
    """The last card that did may come back; without terms it would start anywhere."""
    scene = began()
    scene.cluster.put(JOB, await steered(scene, job(MIDDLE, suspend=True)))
    await scene.work()

    scene.other_cards(*nodes((T4,)))
    await scene.work(seconds=60)

    assert scene.writes == []
    assert record_of(scene.cluster.objects[JOB])


async def test_a_late_estimate_is_waited_for() -> None:
    """Whoever resumes it meanwhile is not held up."""
    scene = began(patience=0.05)
    scene.workers.may_answer.clear()
    scene.cluster.put(JOB, job(MIDDLE, suspend=True))
    await scene.work(seconds=6)
    assert scene.writes == []
    scene.workers.may_answer.set()

    await scene.work(seconds=10)

    assert scene.writes == [("patch", JOB)]


async def test_a_job_that_is_resumed_meanwhile_is_not_written_to() -> None:
    """Our patch was made for the object as it was."""
    scene = began()
    scene.cluster.put(JOB, job(MIDDLE, suspend=True))

    def resume(verb: str, path: str) -> None:
        if path == JOB and verb == "patch":
            scene.cluster.before_write = lambda *_: None
            obj = scene.cluster.objects[JOB]
            started = {"startTime": "2030-01-01T00:00:00Z"}
            resumed = {**obj, "spec": {**obj["spec"], "suspend": False}, "status": started}
            scene.cluster.put(JOB, resumed)

    scene.cluster.before_write = resume
    await scene.work(seconds=10)

    assert scene.writes == []
    assert record_of(scene.cluster.objects[JOB]) is None


@pytest.mark.parametrize("why", ["runs", "queued", "off", "label", "owned", "huge"])
async def test_what_is_not_to_be_steered_is_left(why: str) -> None:
    """What runs, a queue's, what another made; what fits nowhere."""
    scene = began(policy={"mode": "off"} if why == "off" else None)
    batch_size = HUGE if why == "huge" else MIDDLE
    made = job(batch_size, suspend=why != "runs")
    labels = {
        "queued": {"kueue.x-k8s.io/queue-name": "main"},
        "label": {"vramgate.dev/steer": "off"},
    }
    made["metadata"]["labels"] = labels.get(why, {})
    if why == "owned":
        reference = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "set"}
        made["metadata"]["ownerReferences"] = [{**reference, "uid": "1", "controller": True}]
    scene.cluster.put(JOB, made)

    await scene.work(seconds=60)

    assert scene.writes == []
    assert scene.said == []
