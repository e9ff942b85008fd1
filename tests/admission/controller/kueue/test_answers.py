"""What the queue's duty answers of a job with quota, and when."""

from __future__ import annotations

import pytest

from tests.admission.controller import objects
from tests.admission.controller.kueue.scene import (
    CHECK,
    PRODUCT,
    T4,
    WORKLOAD,
    QueueScene,
)
from tests.admission.controller.objects import steered
from tests.admission.controller.scene import HUGE, MIDDLE, SMALL

STATUS = f"{WORKLOAD}/status"
LED_TO_A10 = [{"key": PRODUCT, "operator": "In", "values": ["NVIDIA-A10"]}]


async def test_our_checks_are_active_and_nobody_elses() -> None:
    """Said once, also after a restart; other conditions stay."""
    scene = QueueScene()
    scene.put(f"{CHECK}-other", "AdmissionCheck", {"controllerName": "example.com/budget"})

    await scene.work(seconds=5)
    scene.restart()
    await scene.work(seconds=5)

    (active,) = scene.cluster.objects[CHECK]["status"]["conditions"]
    assert (active["type"], active["status"]) == ("Active", "True")
    assert scene.writes == [("patch", f"{CHECK}/status")]
    assert "status" not in scene.cluster.objects[f"{CHECK}-other"]


async def test_a_flavor_that_holds_it_is_ready_with_need_and_card() -> None:
    """The check of others is theirs."""
    scene = QueueScene()
    scene.queue(SMALL, "t4")

    await scene.work(seconds=5)

    state, message = scene.answer
    assert state == "Ready"
    assert "flavor t4: fits: 10.0 GiB is enough on" in message
    assert "Tesla-T4" in message
    other = scene.cluster.objects[WORKLOAD]["status"]["admissionChecks"][0]
    assert other["state"] == "Pending"
    assert ("train", "GpuMemoryChecked") in scene.said
    assert scene.writes.count(("patch", STATUS)) == 1


async def test_none_holds_it_is_rejected_in_enforce_with_what_would_fit() -> None:
    """The message names need and largest card."""
    scene = QueueScene()
    scene.queue(HUGE, "t4")

    await scene.work(seconds=5)

    state, message = scene.answer
    assert state == "Rejected"
    assert "no flavor of queue team-queue that it may have holds it: needs at least 40.0 GiB" in (
        message
    )
    assert "NVIDIA-A10" in message
    assert ("train", "GpuMemoryTooLarge") in scene.said


@pytest.mark.parametrize("mode", ["warn", "enforce"])
async def test_none_holds_it_is_let_through_where_nobody_enforces(mode: str) -> None:
    """In mode `warn`, or where the job is exempt."""
    scene = QueueScene(policy={"mode": mode, "workloadsMayLoosen": True})
    notes = {"vramgate.dev/exempt-until": "2099-01-01T00:00:00Z"}
    scene.queue(HUGE, "t4", notes=notes if mode == "enforce" else {})

    await scene.work(seconds=5)

    state, message = scene.answer
    assert state == "Ready"
    assert message.startswith("admitted all the same. No flavor of queue team-queue")
    assert ("train", "GpuMemoryTooLarge") in scene.said


async def test_mode_off_and_ignored_jobs_are_ready_unjudged() -> None:
    """They must not wait for ever."""
    scene = QueueScene(policy={"mode": "off"})
    scene.queue(HUGE, "t4")

    await scene.work(seconds=5)

    assert scene.answer == (
        "Ready",
        "not judged here: mode off, a label, or a namespace of the cluster's",
    )


async def test_what_cannot_be_read_is_ready_and_says_so() -> None:
    """By `policy.onUnknown`: a warning, unless it says otherwise."""
    scene = QueueScene()
    scene.queue(None, "t4")

    await scene.work(seconds=5)

    state, message = scene.answer
    assert state == "Ready"
    assert "cannot tell how much GPU memory it needs" in message


@pytest.mark.parametrize(
    ("on_unknown", "state", "kind"),
    [("allow", "Ready", "Normal"), ("warn", "Ready", "Warning"), ("deny", "Rejected", "Warning")],
)
async def test_what_is_unknown_follows_the_policy(on_unknown: str, state: str, kind: str) -> None:
    """As at admission: silently, with a warning, or not at all."""
    scene = QueueScene(policy={"onUnknown": on_unknown})
    scene.queue(None, "t4")

    await scene.work(seconds=5)

    assert scene.answer[0] == state
    (event,) = (each for each in scene.cluster.events if each["reason"] == "GpuMemoryChecked")
    assert event["type"] == kind


async def test_a_flavor_without_nodes_is_unknown_not_too_small() -> None:
    """Nobody has seen its cards: let through, with a word."""
    scene = QueueScene(flavors={"big": {"example.com/pool": "big"}})
    scene.queue(HUGE, "big")

    await scene.work(seconds=5)

    state, message = scene.answer
    assert state == "Ready"
    assert "no GPU node that it may use bears the labels of flavor big" in message


async def test_an_unknown_flavor_beside_it_spares_a_rejection() -> None:
    """The job may fit there: a wrong no blocks somebody's work."""
    scene = QueueScene(flavors={"t4": T4, "big": {"example.com/pool": "big"}})
    scene.queue(HUGE, "t4")

    await scene.work(seconds=5)

    state, message = scene.answer
    assert state == "Ready"
    assert "Whether flavor big holds it is not known." in message


async def test_a_late_estimate_leaves_it_pending_until_it_is_there() -> None:
    """Nothing is written while it runs."""
    scene = QueueScene(patience=0.05)
    scene.workers.may_answer.clear()
    scene.queue(SMALL, "t4")

    await scene.work(seconds=3)
    assert scene.answer[0] == "Pending"
    assert ("patch", STATUS) not in scene.writes

    scene.cluster.wait(seconds=700)  # past controller.gateSeconds
    await scene.work(seconds=2)
    state, message = scene.answer
    assert state == "Ready"
    assert message.startswith("admitted unjudged: no estimate came within 600 s")
    assert ("train", "GpuMemoryNotEstimated") in scene.said
    await scene.judges.pool.close()


async def test_an_answer_is_not_written_to_another_assignment() -> None:
    """Kueue gave it another flavor while it was judged: that one is judged anew."""
    scene = QueueScene()
    scene.queue(SMALL, "t4")

    def reassigned(verb: str, path: str) -> None:
        if (verb, path) == ("patch", STATUS):
            scene.cluster.before_write = lambda *_: None
            scene.assign("a10", number=1)

    scene.cluster.before_write = reassigned
    await scene.work(seconds=40)

    state, message = scene.answer
    assert state == "Ready"
    assert "flavor a10" in message


async def test_a_flavor_of_several_cards_is_judged_by_those_its_terms_leave() -> None:
    """Behind it is a small card too, and the pods cannot go there."""
    scene = QueueScene(flavors={"all": {}})
    scene.queue(MIDDLE, "all")
    await scene.work(seconds=5)
    assert "may land on a card that is too small" in scene.answer[1]

    made = await steered(scene, objects.job(MIDDLE, suspend=True))
    scene.job["spec"] = made["spec"]
    scene.assign("all", number=2)
    await scene.work(seconds=5)

    assert "flavor all: fits" in scene.answer[1]


async def test_what_ran_before_is_not_rejected() -> None:
    """It was taken back for another's sake, and the estimate may be wrong of it."""
    scene = QueueScene()
    scene.queue(HUGE, "t4")
    status = scene.cluster.objects[WORKLOAD]["status"]
    status["accumulatedPastExecutionTimeSeconds"] = 60

    await scene.work(seconds=5)

    assert scene.answer[0] == "Ready"
