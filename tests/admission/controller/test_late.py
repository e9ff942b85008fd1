"""What was let in unjudged is judged later, once, and told; what will not change is left."""

from __future__ import annotations

from typing import Any

import pytest

from admission.cache import Retention
from admission.controller.duties.late import Late
from admission.steer.notes import ENOUGH, VERDICT
from admission.steer.terms import RECORD
from admission.values import Document
from estimator.errors import EstimatorUnavailableError
from estimator.units import GIB
from tests.admission.controller.objects import CRONJOB, JOB, POD, cronjob, job, pod
from tests.admission.controller.scene import HUGE, MIDDLE, SMALL, Scene, owner, spec_note
from tests.admission.steer.scene import A10, T4, nodes

UNKNOWN = {VERDICT: "unknown"}


def began(**scene: Any) -> Scene:
    """Return a scene with the duty at work."""
    made = Scene(**scene)
    made.begin(Late(made.parts))
    return made


def notes_of(scene: Scene, path: str) -> dict[str, str]:
    """Return the annotations of an object."""
    found: dict[str, str] = scene.cluster.objects[path]["metadata"]["annotations"]
    return found


def scripted(**changes: Any) -> dict[str, Any]:
    """Return a Job that runs a script of a ConfigMap."""
    made: dict[str, Any] = job(None, notes=UNKNOWN, **changes)
    spec = made["spec"]["template"]["spec"]
    spec["containers"][0] |= {
        "command": ["bash", "/launch/run.sh"],
        "volumeMounts": [{"name": "launch", "mountPath": "/launch"}],
    }
    spec["volumes"] = [{"name": "launch", "configMap": {"name": "launch"}}]
    return made


SCRIPT = "cd /workspace/vision/references/classification\npython train.py --model resnet50 -b {0}\n"


@pytest.mark.parametrize(
    ("batch_size", "verdict", "reason", "words"),
    [
        (SMALL, "fits", "GpuMemoryEstimated", "10.0 GiB is enough"),
        (MIDDLE, "tight", "GpuMemoryEstimated", "NVIDIA-A10 ×8"),
        (HUGE, "oom", "GpuMemoryTooLarge", "needs at least 40.0 GiB"),
    ],
)
async def test_a_started_job_is_told_and_annotated(
    batch_size: int, verdict: str, reason: str, words: str
) -> None:
    """Its template cannot be changed any more: an Event and its annotations are what is left."""
    scene = began()
    started = job(batch_size, notes=UNKNOWN) | {"status": {"startTime": "2030-01-01T00:00:00Z"}}
    scene.cluster.put(JOB, started)

    await scene.work(seconds=10)

    assert notes_of(scene, JOB)[VERDICT] == verdict
    assert scene.said == [("train", reason)]
    assert words in scene.cluster.events[0]["message"]
    assert scene.writes == [("patch", JOB)]
    assert "affinity" not in scene.cluster.objects[JOB]["spec"]["template"]["spec"]


async def test_what_may_be_steered_still_is() -> None:
    """The next runs of a CronJob go where they fit."""
    scene = began()
    scene.cluster.put(CRONJOB, cronjob(MIDDLE, notes=UNKNOWN))

    await scene.work(seconds=10)

    template = scene.cluster.objects[CRONJOB]["spec"]["jobTemplate"]["spec"]["template"]
    assert RECORD in template["metadata"]["annotations"]
    assert notes_of(scene, CRONJOB)[VERDICT] == "fits"
    assert scene.writes == [("patch", CRONJOB)]
    assert "steered there from now on" in scene.cluster.events[0]["message"]


async def test_an_estimate_on_its_way_is_waited_for() -> None:
    """It is asked for once, however often it is looked at."""
    scene = began(patience=0.05)
    scene.workers.may_answer.clear()
    scene.cluster.put(JOB, job(MIDDLE, notes=UNKNOWN))
    await scene.work(seconds=4)
    assert scene.said == []
    scene.workers.may_answer.set()

    await scene.work(seconds=10)

    assert scene.said == [("train", "GpuMemoryEstimated")]
    assert scene.workers.num_asked == 1


async def test_an_estimator_that_could_not_be_asked_is_asked_again() -> None:
    """It said nothing of the job, and may be back in a second."""
    scene = began()
    scene.judges.pool.retain(Retention(absence_seconds=0.0))
    scene.workers.failure = EstimatorUnavailableError("no estimator worker could be started")
    scene.cluster.put(JOB, job(MIDDLE, notes=UNKNOWN))
    await scene.work(seconds=4)
    assert (scene.said, scene.writes) == ([], [])
    scene.workers.failure = None

    await scene.work(seconds=10)

    assert scene.said == [("train", "GpuMemoryEstimated")]


async def test_a_document_that_comes_is_read() -> None:
    """A ConfigMap is often created after the Job that mounts it; the pauses grow."""
    scene = began()
    scene.cluster.put(JOB, scripted())
    await scene.work(seconds=40)
    assert scene.said == []
    scene.shelf.documents["configmap/launch"] = Document(files={"run.sh": SCRIPT.format(HUGE)})

    await scene.work(seconds=60)

    assert scene.said == [("train", "GpuMemoryTooLarge")]
    assert notes_of(scene, JOB)[VERDICT] == "oom"


async def test_a_spec_that_comes_after_its_job_is_read() -> None:
    """The container says nothing, so what the annotation refers to is what was missing."""
    scene = began()
    late = job(None, notes={**UNKNOWN, "vramgate.dev/spec-ref": "configmap/specs/job.json"})
    late["spec"]["template"]["spec"]["containers"][0]["command"] = ["sleep", "infinity"]
    scene.cluster.put(JOB, late)
    await scene.work(seconds=40)
    assert scene.said == []
    text = spec_note(HUGE)["vramgate.dev/spec"]
    scene.shelf.documents["configmap/specs"] = Document(files={"job.json": text})

    await scene.work(seconds=60)

    assert scene.said == [("train", "GpuMemoryTooLarge")]


async def test_pauses_for_a_document_grow() -> None:
    """Looked at thirteen times in four hours rather than three thousand."""
    scene = began()
    scene.cluster.put(JOB, scripted())

    await scene.work(seconds=4 * 3600)

    reads = scene.cluster.asked.count(("get", JOB))
    # After 5 s, 10 s, … up to an hour: ten looks in the first 43 minutes, then one an hour.
    assert reads == 1 + 9 + 3


async def test_other_cards_have_it_judged_anew() -> None:
    """Nothing of the cluster could hold a pod when it was admitted; now something does."""
    scene = began()
    scene.cards.become()
    scene.cluster.put(JOB, job(SMALL, notes=UNKNOWN))
    await scene.work(seconds=600)
    assert scene.said == []

    scene.other_cards(*nodes((T4, A10)))
    await scene.work()

    assert scene.said == [("train", "GpuMemoryEstimated")]
    assert notes_of(scene, JOB)[ENOUGH] == str(10 * GIB)


async def test_what_will_not_change_is_not_told_and_not_looked_at_again() -> None:
    """Nothing in the manifest says what it trains: until that changes there is nothing to do."""
    scene = began()
    made = job(None, notes=UNKNOWN)
    scene.cluster.put(JOB, made)
    await scene.work(seconds=3600)
    reads = scene.cluster.asked.count(("get", JOB))
    scene.other_cards(*nodes((T4,)))
    scene.cluster.put(JOB, {**made, "status": {"active": 1}})
    await scene.work(seconds=3600)

    assert scene.said == []
    assert scene.cluster.asked.count(("get", JOB)) == reads == 1

    scene.cluster.put(JOB, job(SMALL, notes=UNKNOWN))
    await scene.work()
    assert scene.said == [("train", "GpuMemoryEstimated")]


async def test_the_root_and_its_pods_hear_it_once() -> None:
    """The root is judged, since it alone may say what it trains; pods made later hear it too."""
    scene = began()
    scene.cluster.put(JOB, job(MIDDLE, notes=UNKNOWN))
    owners = owner("Job", "batch/v1", JOB, "train")
    scene.cluster.put(POD, pod(notes=UNKNOWN, owners=owners))
    await scene.work(seconds=10)
    later = pod(notes=UNKNOWN, owners=owners)
    later["metadata"]["name"] = "train-1"
    other = POD.replace("train-0", "train-1")
    scene.cluster.put(other, later)
    await scene.work(seconds=10)

    assert sorted(scene.said) == [
        (name, "GpuMemoryEstimated") for name in ("train", "train-0", "train-1")
    ]
    assert {path: notes_of(scene, path)[VERDICT] for path in (POD, other)} == {
        POD: "tight",
        other: "tight",
    }
    assert sorted(scene.writes) == [("patch", POD), ("patch", other), ("patch", JOB)]


async def test_pods_of_an_unreadable_root_are_not_looked_at() -> None:
    """Thousands of them say no more than their root."""
    scene = began()
    scene.cluster.put(JOB, job(None, notes=UNKNOWN))
    await scene.work()
    asked = len(scene.cluster.asked)
    for index in range(50):
        made = pod(notes=UNKNOWN, owners=owner("Job", "batch/v1", JOB, "train"))
        made["metadata"]["name"] = f"train-{index}"
        scene.cluster.put(POD.replace("train-0", f"train-{index}"), made)

    await scene.work()

    assert len(scene.cluster.asked) == asked


async def test_a_pod_of_nobodys_is_told() -> None:
    """It is its own root."""
    scene = began()
    scene.cluster.put(POD, pod(HUGE, notes=UNKNOWN))

    await scene.work(seconds=10)

    assert scene.said == [("train-0", "GpuMemoryTooLarge")]
    assert notes_of(scene, POD)[VERDICT] == "oom"


async def test_a_queues_object_is_told_and_not_written_to() -> None:
    """What may be written on it is the queue's own question."""
    scene = began()
    made = job(MIDDLE, notes=UNKNOWN, suspend=True)
    made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "main"}
    scene.cluster.put(JOB, made)

    await scene.work(seconds=600)

    assert scene.said == [("train", "GpuMemoryEstimated")]
    assert scene.writes == []


async def test_a_new_controller_says_nothing_again() -> None:
    """What it finds on the objects is all it needs."""
    scene = began()
    scene.cluster.put(JOB, job(MIDDLE, notes=UNKNOWN))
    await scene.work(seconds=10)
    before = list(scene.cluster.writes)

    scene.begin(Late(scene.parts))
    await scene.work(seconds=10)

    assert scene.cluster.writes == before


@pytest.mark.parametrize("why", ["off", "ignored", "ended", "ours"])
async def test_what_is_nobodys_business_is_left_alone(why: str) -> None:
    """Mode off, a namespace that does not want us, a job that is over, the cluster's own."""
    scene = began(policy={"mode": "off"} if why == "off" else None)
    made, path = job(MIDDLE, notes=UNKNOWN), JOB
    if why == "ignored":
        scene.cards.ignored.add("team")
    if why == "ended":
        made["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    if why == "ours":
        made["metadata"]["namespace"] = "kube-system"
        path = JOB.replace("team", "kube-system")
    scene.cluster.put(path, made)

    await scene.work(seconds=600)

    assert scene.cluster.writes == []


@pytest.mark.parametrize("writes", range(6))
async def test_a_death_at_any_write_ends_at_the_same(writes: int) -> None:
    """Event, root, Event, pod, Event, pod: whoever comes next does what is left, and that alone."""
    scene = began()
    scene.cluster.put(JOB, job(MIDDLE, notes=UNKNOWN))
    paths = [POD, POD.replace("train-0", "train-1")]
    for path in paths:
        made = pod(notes=UNKNOWN, owners=owner("Job", "batch/v1", JOB, "train"))
        made["metadata"]["name"] = path.rpartition("/")[2]
        scene.cluster.put(path, made)
    left = [writes]

    def die(*_: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            scene.cluster.before_write = lambda *_: None
            raise KeyboardInterrupt

    scene.cluster.before_write = die
    with pytest.raises(KeyboardInterrupt):
        await scene.work(seconds=10)
    scene.begin(Late(scene.parts))
    await scene.work(seconds=10)

    assert sorted(scene.writes) == [("patch", path) for path in sorted([*paths, JOB])]
    assert sorted(scene.said) == [
        (name, "GpuMemoryEstimated") for name in ("train", "train-0", "train-1")
    ]
