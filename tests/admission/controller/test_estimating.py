"""Pods behind our gate: led to a card that holds them and let go, once and in one patch."""

from __future__ import annotations

from typing import Any

import pytest

from admission.controller.duties.estimating import Estimating
from admission.steer.gates import gates_of
from admission.steer.notes import ENOUGH, VERDICT
from admission.steer.terms import RECORD
from estimator.units import GIB
from tests.admission.controller.objects import JOB, POD, pod
from tests.admission.controller.scene import HUGE, MIDDLE, Scene, owner

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def terms_of(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the alternatives of the required node affinity."""
    node = obj["spec"].get("affinity", {}).get("nodeAffinity", {})
    found: list[dict[str, Any]] = node.get(REQUIRED, {}).get("nodeSelectorTerms", [])
    return found


@pytest.fixture
async def scene() -> Scene:
    """Have the duty at work in a cluster with a T4 and an A10."""
    return began()


def began(**scene: Any) -> Scene:
    """Return a scene with the duty at work."""
    made = Scene(gate_seconds=60, **scene)
    made.begin(Estimating(made.parts))
    return made


@pytest.mark.parametrize("owners", [(), owner("Job", "batch/v1", JOB, "train")])
async def test_it_is_steered_noted_and_let_go_in_one_patch(scene: Scene, owners: Any) -> None:
    """Somebody else's gate stays. A pod that a Job made is steered as well."""
    scene.cluster.put(POD, pod(MIDDLE, gated=True, owners=owners))

    await scene.work()

    obj = scene.cluster.objects[POD]
    assert gates_of(obj) == ("other",)
    (term,) = terms_of(obj)
    assert term["matchExpressions"][0]["operator"] == "Gt"
    notes = obj["metadata"]["annotations"]
    assert (notes[VERDICT], notes[ENOUGH]) == ("fits", str(20 * GIB))
    assert RECORD in notes
    assert scene.said == [("train-0", "GpuMemoryEstimated")]
    assert scene.writes == [("patch", POD)]
    (event,) = scene.cluster.events
    assert "20.0 GiB is enough" in event["message"]
    assert "NVIDIA-A10 ×8" in event["message"]


async def test_a_persons_alternatives_only_get_narrower(scene: Scene) -> None:
    """Of a gated pod the API server takes more expressions, and none less."""
    own = {"key": "example.com/zone", "operator": "NotIn", "values": ["b"]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [own]}]}}}
    scene.cluster.put(POD, pod(MIDDLE, gated=True, affinity=affinity))

    await scene.work()

    (term,) = terms_of(scene.cluster.objects[POD])
    assert term["matchExpressions"][0] == own
    assert term["matchExpressions"][1]["operator"] == "Gt"


async def test_it_waits_for_the_estimate_and_not_for_ever() -> None:
    """After `controller.gateSeconds` it goes on as it is, with a warning."""
    scene = began(patience=0.05)
    scene.workers.may_answer.clear()
    scene.cluster.put(POD, pod(MIDDLE, gated=True))

    await scene.work(seconds=5)
    assert scene.writes == []

    scene.cluster.wait(seconds=60)
    await scene.work()

    obj = scene.cluster.objects[POD]
    assert gates_of(obj) == ("other",)
    assert terms_of(obj) == []
    (event,) = scene.cluster.events
    assert (event["type"], event["reason"]) == ("Warning", "GpuMemoryNotEstimated")
    assert "within 60 s" in event["message"]


async def test_an_estimate_that_comes_is_taken() -> None:
    """It is asked for again while the pod waits."""
    scene = began(patience=0.05)
    scene.workers.may_answer.clear()
    scene.cluster.put(POD, pod(MIDDLE, gated=True))
    await scene.work(seconds=1)
    scene.workers.may_answer.set()

    await scene.work(seconds=3)

    assert scene.said == [("train-0", "GpuMemoryEstimated")]
    assert terms_of(scene.cluster.objects[POD])
    assert scene.workers.num_asked == 1


@pytest.mark.parametrize(
    ("owners", "because"),
    [
        (owner("Job", "batch/v1", JOB, "train"), "pods of a controller (Job) are never denied"),
        ((), "admitted already"),
    ],
)
async def test_what_no_card_holds_is_let_go_and_told(
    scene: Scene, owners: Any, because: str
) -> None:
    """It is said what it needs; to hold it would help nobody."""
    scene.cluster.put(POD, pod(HUGE, gated=True, owners=owners))

    await scene.work()

    obj = scene.cluster.objects[POD]
    assert gates_of(obj) == ("other",)
    assert obj["metadata"]["annotations"][VERDICT] == "oom"
    (event,) = scene.cluster.events
    assert (event["type"], event["reason"]) == ("Warning", "GpuMemoryTooLarge")
    assert "needs at least 40.0 GiB" in event["message"]
    assert because in event["message"]


async def test_what_cannot_be_read_is_let_go(scene: Scene) -> None:
    """There is nothing to wait for."""
    scene.cluster.put(POD, pod(None, gated=True))

    await scene.work()

    assert gates_of(scene.cluster.objects[POD]) == ("other",)
    assert scene.said == [("train-0", "GpuMemoryNotEstimated")]


@pytest.mark.parametrize("why", ["mode", "object", "namespace", "queue"])
async def test_where_nobody_may_be_steered_the_gate_goes_alone(why: str) -> None:
    """A pod must not hang because somebody switched us off meanwhile."""
    scene = began(policy={"mode": "off"} if why == "mode" else None)
    made = pod(MIDDLE, gated=True)
    if why == "object":
        made["metadata"]["labels"] = {"vramgate.dev/webhook": "ignore"}
    if why == "queue":
        made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "main"}
    if why == "namespace":
        scene.cards.ignored.add("team")
    scene.cluster.put(POD, made)

    await scene.work()

    obj = scene.cluster.objects[POD]
    assert gates_of(obj) == ("other",)
    assert terms_of(obj) == []
    assert VERDICT not in obj["metadata"]["annotations"]
    assert len(scene.said) == 1


async def test_a_patch_that_is_refused_leaves_the_pod_to_its_deadline(scene: Scene) -> None:
    """Another webhook may refuse affinity; the gate alone is what it takes then."""
    scene.cluster.put(POD, pod(MIDDLE, gated=True))
    scene.cluster.refused["patch", POD] = 422
    await scene.work(seconds=30)
    assert gates_of(scene.cluster.objects[POD])[-1] != "other"
    del scene.cluster.refused["patch", POD]

    await scene.work(seconds=60)

    assert gates_of(scene.cluster.objects[POD]) == ("other",)
    assert terms_of(scene.cluster.objects[POD]) == []
    assert [reason for _, reason in scene.said] == ["GpuMemoryEstimated", "GpuMemoryNotEstimated"]


async def test_a_controller_that_died_between_event_and_patch_is_followed(scene: Scene) -> None:
    """The next one says nothing twice and ends at the same."""
    scene.cluster.put(POD, pod(MIDDLE, gated=True))

    def die(verb: str, path: str) -> None:
        if path == POD and verb == "patch":
            scene.cluster.before_write = lambda *_: None
            raise KeyboardInterrupt

    scene.cluster.before_write = die
    with pytest.raises(KeyboardInterrupt):
        await scene.work()
    scene.begin(Estimating(scene.parts))
    await scene.work()

    assert gates_of(scene.cluster.objects[POD]) == ("other",)
    assert scene.said == [("train-0", "GpuMemoryEstimated")]
    assert scene.writes == [("patch", POD)]


async def test_a_pod_that_changes_meanwhile_is_looked_at_again(scene: Scene) -> None:
    """Somebody added an alternative of their own: our patch was made for another pod."""
    scene.cluster.put(POD, pod(MIDDLE, gated=True))

    def change(verb: str, path: str) -> None:
        if path == POD and verb == "patch":
            scene.cluster.before_write = lambda *_: None
            obj = scene.cluster.objects[POD]
            scene.cluster.put(POD, {**obj, "spec": {**obj["spec"], "nodeSelector": {"a": "b"}}})

    scene.cluster.before_write = change
    await scene.work(seconds=5)

    assert gates_of(scene.cluster.objects[POD]) == ("other",)
    assert scene.writes == [("patch", POD)]


async def test_pods_of_the_cluster_itself_are_never_touched(scene: Scene) -> None:
    """Nor those beside the controller."""
    for namespace in ("kube-system", "vramgate-system"):
        made = pod(MIDDLE, gated=True)
        made["metadata"]["namespace"] = namespace
        scene.cluster.put(f"/api/v1/namespaces/{namespace}/pods/train-0", made)

    await scene.work()

    assert scene.writes == []
    assert scene.said == []
