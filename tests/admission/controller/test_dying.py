"""A job that died on a small card is told of, remembered and moved; each thing once."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from admission.controller.acts import Cause, Died
from admission.controller.moving import MOVING
from admission.learning.deaths import KEY, read_deaths
from admission.learning.lesson import LEARNT, RETRY
from estimator.result import Estimate
from estimator.units import GIB
from tests.admission.controller.dead import (
    A10_NODE,
    T4_NODE,
    affinity,
    began,
    dead_pod,
    died,
    ended,
    restart,
    running_job,
)
from tests.admission.controller.objects import JOB, POD
from tests.admission.controller.scene import NAMESPACE, SMALL, Scene
from tests.admission.steer.scene import A10, T4, nodes
from tests.builders import estimate, gpu_labels, node

LEARNED = f"/api/v1/namespaces/{NAMESPACE}/configmaps/vramgate-learned"
OOM, MOVED, NOT_MOVED = "GpuOutOfMemory", "GpuMemoryMoved", "GpuMemoryNotMoved"


async def through(scene: Scene) -> None:
    """Let the duties work, and the Job controller, until nothing is left to do."""
    for _ in range(4):
        await scene.work(seconds=1)
        ended(scene)
    await scene.work(seconds=1)


def step(scene: Scene) -> dict[str, Any]:
    """Return how far the move is."""
    text = scene.cluster.objects[JOB]["metadata"]["annotations"][MOVING]
    found: dict[str, Any] = orjson.loads(text)
    return found


async def test_it_is_moved_without_a_hand() -> None:
    """Suspended, changed once its pods are gone, resumed on the larger card."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)

    await through(scene)

    obj = scene.cluster.objects[JOB]
    assert obj["spec"]["suspend"] is False
    (memory,) = affinity(obj)
    assert memory["operator"] == "Gt"
    assert 15360 < int(memory["values"][0]) < 23028
    assert [reason for _, reason in scene.said] == [OOM, MOVED, MOVED]
    assert scene.writes == [
        ("create", LEARNED),
        ("patch", JOB),
        ("patch", JOB),
        ("patch", JOB),
    ]
    assert scene.counted == [Died(framework="pytorch", predicted=False), Cause.OUT_OF_MEMORY]
    assert (step(scene)["step"], step(scene)["count"]) == ("done", 1)


async def test_people_read_the_estimate_beside_the_truth() -> None:
    """And what comes next."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)

    await scene.work()

    (event,) = [each for each in scene.cluster.events if each["reason"] == OOM]
    assert event["message"] == (
        "pod train-0 died on Tesla-T4 that gave it 14.5 GiB; estimated 10.0 to 10.0 GiB; next: it "
        "is moved to a card that gives it at least 15.3 GiB (NVIDIA-A10)"
    )
    assert event["type"] == "Warning"


async def test_what_it_taught_is_kept_on_it_and_for_its_name() -> None:
    """More than the card gave, by more than drivers differ in."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)

    await scene.work()

    notes = scene.cluster.objects[JOB]["metadata"]["annotations"]
    gave = orjson.loads(notes[LEARNT])["gaveBytes"]
    assert int(notes[RETRY]) == gave * 105 // 100 + 1
    (kept,) = read_deaths(scene.cluster.objects[LEARNED]["data"][KEY])
    assert (kept.namespace, kept.names) == ("team", ("Job.batch/train",))
    assert kept.floor.nbytes == int(notes[RETRY])


@pytest.mark.parametrize("limit", [0, 1])
async def test_without_a_retry_it_is_told_and_left(limit: int) -> None:
    """Whether the Job controller has counted the death by then or not."""
    scene = began()
    died(scene, SMALL, backoffLimit=limit)
    if limit:
        scene.cluster.objects[JOB]["status"]["failed"] = 2

    await through(scene)

    assert [reason for _, reason in scene.said] == [OOM]
    assert (
        f"no retry is left (backoffLimit {limit} is used up)" in scene.cluster.events[-1]["message"]
    )
    assert MOVING not in scene.cluster.objects[JOB]["metadata"]["annotations"]


async def test_on_the_largest_card_it_is_told_what_would_fit() -> None:
    """And neither suspended nor deleted: no loop."""
    scene = began()
    scene.other_cards(*nodes((T4,)))
    died(scene, SMALL, backoffLimit=6)

    await through(scene)

    assert [reason for _, reason in scene.said] == [OOM]
    message = scene.cluster.events[-1]["message"]
    assert "no larger card that it may use is known" in message
    assert "it fits with batch size 50" in message
    assert "suspend" not in scene.cluster.objects[JOB]["spec"]


async def test_a_job_of_a_queue_is_only_told_of() -> None:
    """Its queue says when it runs again."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)
    labels = {"kueue.x-k8s.io/queue-name": "gpus"}
    scene.cluster.objects[JOB]["metadata"]["labels"] = labels

    await through(scene)

    notes = scene.cluster.objects[JOB]["metadata"]["annotations"]
    assert RETRY in notes
    assert MOVING not in notes
    assert "its queue says" in scene.cluster.events[-1]["message"]


@pytest.mark.parametrize(
    "what", ["mode", "label", "namespace", "system"], ids=["off", "ignored", "ignored-all", "own"]
)
async def test_what_is_to_be_left_alone_hears_nothing(what: str) -> None:
    """Not a word, not a write."""
    scene = began(policy={"mode": "off"} if what == "mode" else {})
    died(scene, SMALL, backoffLimit=6)
    if what == "label":
        scene.cluster.objects[JOB]["metadata"]["labels"] = {"vramgate.dev/webhook": "ignore"}
    if what == "namespace":
        scene.cards.ignored.add("team")
    if what == "system":
        scene.cluster.objects.clear()
        for path, obj in ((JOB, running_job(SMALL)), (POD, dead_pod())):
            obj["metadata"]["namespace"] = "kube-system"
            scene.cluster.put(path.replace("/team/", "/kube-system/"), obj)

    await through(scene)

    assert scene.cluster.writes == []


async def test_steering_that_is_off_moves_nothing() -> None:
    """Nobody would lead it anywhere else."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)
    scene.cluster.objects[JOB]["metadata"]["labels"] = {"vramgate.dev/steer": "off"}

    await through(scene)

    assert "steering is off here" in scene.cluster.events[-1]["message"]
    assert MOVING not in scene.cluster.objects[JOB]["metadata"]["annotations"]


async def test_two_ranks_that_die_together_are_one_death() -> None:
    """Told on the job, by the first that is looked at."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)
    other = dead_pod(name="train-1", finished="2030-01-01T00:00:02Z")
    scene.cluster.put(POD.replace("train-0", "train-1"), other)

    await through(scene)

    assert [reason for _, reason in scene.said] == [OOM, MOVED, MOVED]


async def test_a_death_on_the_larger_card_is_news() -> None:
    """Then there is none left, and it was moved once."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)
    await through(scene)
    second = dead_pod(name="train-1", node=A10_NODE, finished="2030-01-01T00:00:05Z")

    scene.cluster.put(POD.replace("train-0", "train-1"), second)
    await through(scene)

    assert [reason for _, reason in scene.said] == [OOM, MOVED, MOVED, OOM]
    assert step(scene)["count"] == 1


async def test_moves_have_pauses_and_an_end() -> None:
    """Back on a T4 by somebody's hand: later each time, and not for ever."""
    scene = began(move_pause_seconds=100, most_moves=2)
    died(scene, SMALL, backoffLimit=20)
    await through(scene)
    for number in (1, 2):
        await scene.work(seconds=200 * number)
        name = f"train-{number}"
        finished = scene.cluster.now.isoformat()
        again = dead_pod(name=name, node=T4_NODE, finished=finished)
        scene.cluster.put(POD.replace("train-0", name), again)
        await through(scene)

    assert step(scene)["count"] == 2
    assert "it is not moved again, after 2 times" in scene.cluster.events[-1]["message"]


async def test_moves_that_the_settings_do_not_want_are_not_made() -> None:
    """What is made anew is steered still."""
    scene = began(moves=())
    died(scene, SMALL, backoffLimit=6)

    await through(scene)

    assert [reason for _, reason in scene.said] == [OOM]
    assert "controller.moves has no `dead`" in scene.cluster.events[-1]["message"]


async def test_other_deaths_are_none_of_ours() -> None:
    """Whatever its status."""
    scene = began()
    scene.cluster.put(JOB, running_job(SMALL))
    for number, (message, code) in enumerate(
        [("Killed", 137), ("ValueError: bad", 1), ("NCCL communicator was aborted", 1), ("", 1)]
    ):
        made = dead_pod(message=message, code=code, name=f"train-{number}")
        scene.cluster.put(POD.replace("train-0", f"train-{number}"), made)

    await through(scene)

    assert scene.cluster.writes == []


async def test_a_silent_death_on_a_full_card_is_probably_one() -> None:
    """By what the agent saw it hold, where its log says nothing."""
    scene = began()
    scene.cluster.put(JOB, running_job(SMALL, backoffLimit=6))
    peaks = orjson.dumps({"train": {"GPU-1": 14 * 2**30 + 2**29}}).decode()
    scene.cluster.put(POD, dead_pod(message="", notes={"vramgate.dev/peak-bytes": peaks}))

    await scene.work()

    assert [reason for _, reason in scene.said][:1] == [OOM]
    assert (
        "probably died of too little GPU memory on Tesla-T4" in scene.cluster.events[0]["message"]
    )


async def test_a_pod_of_nobodys_is_told_and_remembered() -> None:
    """Nobody makes it anew but a person."""
    scene = began()
    made = dead_pod(owners=())
    made["metadata"]["annotations"] = running_job(SMALL)["metadata"]["annotations"]
    scene.cluster.put(POD, made)

    await through(scene)

    assert scene.said == [("train-0", OOM)]
    assert RETRY in scene.cluster.objects[POD]["metadata"]["annotations"]
    assert LEARNED in scene.cluster.objects


class _Killed(BaseException):
    """The controller ends here."""


@pytest.mark.parametrize("moment", range(1, 8))
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
async def test_killed_at_any_write_it_comes_to_the_same_end(moment: int, is_done: bool) -> None:
    """A new controller goes on from what is on the objects: nothing lost, nothing twice."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)
    left = [moment]

    def kill(verb: str, path: str) -> None:
        left[0] -= 1
        if left[0] == (-1 if is_done else 0):
            left[0] = -100
            raise _Killed

    scene.cluster.before_write = kill
    for _ in range(6):
        try:
            await scene.work(seconds=1)
        except _Killed:
            restart(scene)
        ended(scene)
    await scene.work(seconds=1)

    obj = scene.cluster.objects[JOB]
    assert obj["spec"]["suspend"] is False
    assert affinity(obj)
    assert step(scene)["step"] == "done"
    assert step(scene)["count"] == 1
    assert [reason for _, reason in scene.said] == [OOM, MOVED, MOVED]
    assert scene.writes.count(("patch", JOB)) == 3


async def test_what_may_not_be_changed_is_resumed_as_it_was() -> None:
    """We suspended it: nobody else would."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)
    await scene.work(seconds=1)
    ended(scene)
    assert scene.cluster.objects[JOB]["spec"]["suspend"] is True
    scene.other_cards(*nodes((T4,)))

    await scene.work(seconds=200)

    assert scene.cluster.objects[JOB]["spec"]["suspend"] is False
    assert scene.said[-1] == ("train", NOT_MOVED)
    assert step(scene)["step"] == "done"


async def test_pods_that_do_not_end_keep_it_suspended_for_a_time_only() -> None:
    """Fifteen minutes, then it is let go."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)
    await scene.work(seconds=60)
    assert scene.cluster.objects[JOB]["spec"]["suspend"] is True

    await scene.work(seconds=900)

    assert scene.cluster.objects[JOB]["spec"]["suspend"] is False
    assert scene.said[-1] == ("train", NOT_MOVED)


async def test_before_1_36_the_start_time_is_taken_away_first() -> None:
    """Only then does the API server let the template be changed."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)
    await scene.work(seconds=1)
    obj = scene.cluster.objects[JOB]
    status = {"conditions": [{"type": "Suspended", "status": "True"}], "startTime": "2030"}
    scene.cluster.put(JOB, {**obj, "status": status})

    await scene.work(seconds=2)

    obj = scene.cluster.objects[JOB]
    assert "startTime" not in obj["status"]
    assert obj["spec"]["suspend"] is False
    assert ("patch", f"{JOB}/status") in scene.writes


async def test_what_somebody_suspended_is_theirs() -> None:
    """Neither changed nor resumed by the move."""
    scene = began()
    died(scene, SMALL, backoffLimit=6, suspend=True)

    await through(scene)

    assert scene.cluster.objects[JOB]["spec"]["suspend"] is True
    assert scene.said[-1] == ("train", NOT_MOVED)


async def test_an_owner_that_may_not_be_read_is_none_of_ours() -> None:
    """And is not asked for again and again."""
    scene = began()
    died(scene, SMALL, backoffLimit=6)
    scene.cluster.refused["get", JOB] = 403

    await scene.work(seconds=100)

    assert scene.cluster.writes == []
    assert scene.cluster.asked.count(("get", JOB)) <= 2


async def test_a_job_that_cannot_be_read_is_told_and_remembered() -> None:
    """What it needs is not known, but that it is more than this card gave."""
    scene = began()
    died(scene, None, backoffLimit=6)

    await through(scene)

    message = scene.cluster.events[-1]["message"]
    assert "its need had not been estimated" in message
    assert "choose a card that gives it more than 15.3 GiB" in message
    assert scene.counted == [Died(framework="pytorch", predicted=None)]
    assert RETRY in scene.cluster.objects[JOB]["metadata"]["annotations"]
    assert MOVING not in scene.cluster.objects[JOB]["metadata"]["annotations"]


async def test_on_a_time_sliced_card_the_neighbours_may_have_had_it() -> None:
    """Nothing is learnt of the card, and nobody moved."""
    scene = began()
    labels = gpu_labels(product=T4[0], memory=str(T4[1]), compute=T4[2])
    labels |= {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}
    scene.other_cards(node(T4_NODE, labels=labels), *nodes((A10,)))
    died(scene, SMALL, backoffLimit=6)

    await through(scene)

    assert "its neighbours on the time-sliced card" in scene.cluster.events[-1]["message"]
    assert RETRY not in scene.cluster.objects[JOB]["metadata"]["annotations"]


async def test_a_limit_of_its_own_is_no_cards_fault() -> None:
    """A larger card would not help."""
    scene = began()

    async def limited(job: Any, devices: Any) -> tuple[Estimate, ...]:
        return tuple(
            estimate(least=10 * GIB, allocator_limit=8 * GIB, card=card, spec=job)
            for card in devices
        )

    scene.workers.estimate = limited  # type: ignore[method-assign]
    died(scene, SMALL, backoffLimit=6)

    await through(scene)

    assert "it limits its own use of the card" in scene.cluster.events[-1]["message"]
    assert RETRY not in scene.cluster.objects[JOB]["metadata"]["annotations"]
