"""A pod that our steering keeps waiting: what it misses is said, and it is let go if it may be."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from admission.controller.duties.stuck import Stuck
from admission.steer.terms import RECORD
from estimator.units import GIB
from tests.admission.controller.objects import (
    JOB,
    POD,
    PYTORCHJOB,
    job,
    pod_of,
    pytorchjob,
    running,
    steered,
)
from tests.admission.controller.scene import MIDDLE, Scene
from tests.builders import estimate

TAKEN = "/api/v1/namespaces/team/pods/other"
MASTER = ("spec", "pytorchReplicaSpecs", "Master", "template")


def began(**settings: Any) -> Scene:
    """Return a scene with the duty at work; a pod is stuck after a minute."""
    made = Scene(stuck_seconds=60, **settings)
    made.begin(Stuck(made.parts))
    return made


async def stuck_job(scene: Scene, batch_size: int = MIDDLE) -> None:
    """Have a Job that was steered, and its pod that fits no node."""
    root = await steered(scene, job(batch_size))
    scene.cluster.put(JOB, root)
    scene.cluster.put(POD, pod_of(root, JOB, root["spec"]["template"]))


async def stuck_pytorchjob(scene: Scene) -> None:
    """Have a PyTorchJob that was steered and has started, and its pod that fits no node."""
    root = await steered(scene, pytorchjob(MIDDLE))
    root["status"] = {"startTime": "2030-01-01T00:00:00Z"}
    scene.cluster.put(PYTORCHJOB, root)
    scene.cluster.put(POD, pod_of(root, PYTORCHJOB, at(root, *MASTER)))


def at(obj: Any, *keys: str) -> Any:
    """Return what is at *keys*."""
    for key in keys:
        obj = obj[key]
    return obj


def may_do_on_a_t4(scene: Scene) -> None:
    """Have estimates whose `least` a T4 holds, and whose `enough` an A10 alone."""

    async def estimated(spec: Any, devices: Any) -> Any:
        return tuple(
            estimate(least=12 * GIB, enough=20 * GIB, card=card, spec=spec) for card in devices
        )

    scene.workers.estimate = estimated  # type: ignore[method-assign,assignment]


async def test_it_is_said_which_card_is_missing() -> None:
    """What it needs, who has such cards, how many are taken, and what steering keeps it from."""
    scene = began()
    await stuck_job(scene)
    scene.cluster.put(TAKEN, running("other", "nvidia-a10", gpus=8))

    await scene.work(seconds=59)
    assert scene.said == []
    await scene.work(seconds=1)

    assert scene.said == [("train-0", "GpuMemoryCardMissing")]
    (event,) = scene.cluster.events
    assert event["type"] == "Warning"
    assert event["message"] == (
        "waits for a card: it needs 20.0 GiB on one GPU, steering leaves it NVIDIA-A10 (8 of 8 "
        "taken). Steering keeps it off Tesla-T4 (0 of 8 taken), which gives it 14.5 GiB, too "
        "little: it needs at least 20.0 GiB there. Wait until one is free or add a node with one; "
        "to let it go elsewhere, make Job team/train anew with the label vramgate.dev/steer: "
        "preferred."
    )
    assert scene.writes == []


async def test_it_is_said_once() -> None:
    """However often the scheduler says anew that it fits nowhere; a new controller too."""
    scene = began()
    await stuck_job(scene)
    scene.cluster.put(TAKEN, running("other", "nvidia-a10", gpus=8))
    await scene.work(seconds=60)
    asked = len(scene.cluster.asked)
    obj = copy.deepcopy(scene.cluster.objects[POD])
    obj["status"]["conditions"][0]["message"] = "0/3 nodes are available"
    scene.cluster.put(POD, obj)
    await scene.work(seconds=600)
    assert len(scene.cluster.asked) == asked

    scene.begin(Stuck(scene.parts))
    await scene.work(seconds=600)

    assert scene.said == [("train-0", "GpuMemoryCardMissing")]


async def test_what_is_not_known_any_more_is_said_to_be_so() -> None:
    """Its owner took back what it trains: that cards are taken is true all the same."""
    scene = began()
    await stuck_job(scene)
    root = copy.deepcopy(scene.cluster.objects[JOB])
    del root["metadata"]["annotations"]["vramgate.dev/spec"]
    scene.cluster.put(JOB, root)
    scene.cluster.put(TAKEN, running("other", "nvidia-a10", gpus=8))

    await scene.work(seconds=600)

    (event,) = scene.cluster.events
    assert "what it needs is not known, steering leaves it NVIDIA-A10" in event["message"]


async def test_a_card_that_is_gone_is_said_to_be() -> None:
    """Removed nodes count for some days: a pool may come back."""
    scene = began()
    await stuck_job(scene)
    scene.cards.nodes.discard("nvidia-a10")

    await scene.work(seconds=60)

    assert "waits for a card that no node has now" in scene.cluster.events[0]["message"]


@pytest.mark.parametrize("why", ["free", "unsteered", "own", "bound", "queue", "off"])
async def test_what_waits_for_something_else_is_left(why: str) -> None:
    """A free card, terms that are not ours or shut nothing: it is not our steering."""
    scene = began(policy={"mode": "off"} if why == "off" else None)
    batch_size = 100 if why == "unsteered" else MIDDLE
    await stuck_job(scene, batch_size)
    obj = copy.deepcopy(scene.cluster.objects[POD])
    if why == "own":
        del obj["metadata"]["annotations"][RECORD]
    if why == "bound":
        obj["spec"]["nodeName"] = "nvidia-a10"
    if why == "queue":
        obj["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "main"}
    scene.cluster.put(POD, obj)
    taken = 7 if why == "free" else 8
    scene.cluster.put(TAKEN, running("other", "nvidia-a10", gpus=taken))

    await scene.work(seconds=600)

    assert scene.said == []


async def test_a_card_that_is_taken_later_is_told_of_later() -> None:
    """While one was free it waited for something else."""
    scene = began()
    await stuck_job(scene)
    scene.cluster.put(TAKEN, running("other", "nvidia-a10", gpus=7))
    await scene.work(seconds=60)
    scene.cluster.put(TAKEN, running("other", "nvidia-a10", gpus=8))

    await scene.work(seconds=60)

    assert scene.said == [("train-0", "GpuMemoryCardMissing")]


async def test_it_is_let_go_to_the_next_card_where_settings_allow() -> None:
    """The template first, then the pod, so that another is made from it."""
    scene = began(relax_steering=True)
    may_do_on_a_t4(scene)
    await stuck_pytorchjob(scene)
    scene.cluster.put(TAKEN, running("other", "nvidia-a10", gpus=8))
    before = at(scene.cluster.objects[PYTORCHJOB], *MASTER)

    await scene.work(seconds=60)

    assert scene.writes == [("patch", PYTORCHJOB), ("delete", POD)]
    assert [reason for _, reason in scene.said] == [
        "GpuMemoryCardMissing",
        "GpuMemorySteeringRelaxed",
    ]
    after = at(scene.cluster.objects[PYTORCHJOB], *MASTER)
    assert threshold(after) < 15360 < threshold(before)
    assert "which may do: it needs 12.0 GiB to 20.0 GiB there" in scene.cluster.events[1]["message"]


async def test_what_was_let_go_is_not_deleted_again() -> None:
    """The pod that is made of the relaxed template waits like any other."""
    scene = began(relax_steering=True)
    may_do_on_a_t4(scene)
    await stuck_pytorchjob(scene)
    scene.cluster.put(TAKEN, running("other", "nvidia-a10", gpus=8))
    await scene.work(seconds=60)
    root = scene.cluster.objects[PYTORCHJOB]
    again = pod_of(root, PYTORCHJOB, at(root, *MASTER))
    again["metadata"]["uid"] = "another"
    scene.cluster.put(POD, again)
    t4 = TAKEN.replace("other", "third")
    scene.cluster.put(t4, running("third", "tesla-t4", gpus=8))

    await scene.work(seconds=600)
    scene.begin(Stuck(scene.parts))
    await scene.work(seconds=600)

    assert scene.writes == [("patch", PYTORCHJOB), ("delete", POD)]


async def test_after_a_death_between_template_and_pod_the_pod_follows() -> None:
    """It is not what its template says any more."""
    scene = began(relax_steering=True)
    may_do_on_a_t4(scene)
    await stuck_pytorchjob(scene)
    scene.cluster.put(TAKEN, running("other", "nvidia-a10", gpus=8))

    def die(verb: str, path: str) -> None:
        if verb == "delete":
            scene.cluster.before_write = lambda *_: None
            raise KeyboardInterrupt

    scene.cluster.before_write = die
    with pytest.raises(KeyboardInterrupt):
        await scene.work(seconds=60)
    scene.begin(Stuck(scene.parts))
    await scene.work(seconds=60)

    assert scene.writes == [("patch", PYTORCHJOB), ("delete", POD)]
    assert [reason for _, reason in scene.said] == [
        "GpuMemoryCardMissing",
        "GpuMemorySteeringRelaxed",
    ]


@pytest.mark.parametrize("why", ["job", "taken", "too small", "not allowed"])
async def test_where_nothing_can_be_done_it_is_only_told(why: str) -> None:
    """A Job's template is fixed; a card that is taken or too small is no way out."""
    scene = began(relax_steering=why != "not allowed")
    if why != "too small":
        may_do_on_a_t4(scene)
    await (stuck_job(scene) if why == "job" else stuck_pytorchjob(scene))
    scene.cluster.put(TAKEN, running("other", "nvidia-a10", gpus=8))
    if why == "taken":
        third = TAKEN.replace("other", "third")
        scene.cluster.put(third, running("third", "tesla-t4", gpus=8))

    await scene.work(seconds=600)

    assert scene.writes == []
    assert scene.said == [("train-0", "GpuMemoryCardMissing")]


def threshold(template: dict[str, Any]) -> int:
    """Return the memory in MiB that a node must have more of."""
    node = template["spec"]["affinity"]["nodeAffinity"]
    (term,) = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return int(term["matchExpressions"][0]["values"][0])
