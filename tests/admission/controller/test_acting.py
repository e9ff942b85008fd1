"""Acts against an API server: told, then written, and never twice."""

from __future__ import annotations

from typing import Any

import pytest

from admission.controller.acting import Acting, Outcome
from admission.controller.acts import Act, Cause, Merge, Operate, Reason, Remove, Tell
from admission.controller.refs import Discovery, Ref
from tests.admission.controller.cluster import Cluster

JOB = "/apis/batch/v1/namespaces/team/jobs/train"
REF = Ref(api_version="batch/v1", kind="Job", namespace="team", name="train", uid=f"uid-{JOB}")


@pytest.fixture
def cluster() -> Cluster:
    """Have one Job."""
    made = Cluster()
    made.put(JOB, {"metadata": {"name": "train", "namespace": "team"}, "spec": {"suspend": True}})
    return made


def acting(cluster: Cluster, counted: list[Cause] | None = None) -> Acting:
    """Return who acts on *cluster*."""
    objects: Any = cluster
    moved = (lambda _: None) if counted is None else counted.append
    return Acting(objects, Discovery(objects), moved=moved, now=lambda: cluster.now)


def tell(cause: str = "1") -> Tell:
    """Return something to say of the Job."""
    return Tell(about=REF, reason=Reason.MOVED, note="to a larger card", cause=cause)


def test_it_is_said_first_and_then_written(cluster: Cluster) -> None:
    """So that nothing was ever written that nobody can read the reason of."""
    counted: list[Cause] = []
    change = Merge(on=REF, changes={"spec": {"suspend": False}})
    outcome = acting(cluster, counted).act(
        Act(tell=tell(), writes=(change,), cause=Cause.OUT_OF_MEMORY)
    )

    assert outcome is Outcome.DONE
    assert [verb for verb, _ in cluster.writes] == ["create", "patch"]
    (event,) = cluster.events
    assert event["involvedObject"]["uid"] == REF.uid
    assert (event["reason"], event["message"]) == ("GpuMemoryMoved", "to a larger card")
    assert cluster.objects[JOB]["spec"]["suspend"] is False
    assert counted == [Cause.OUT_OF_MEMORY]


def test_what_was_said_is_not_said_again_and_is_still_done(cluster: Cluster) -> None:
    """A controller that was killed between the two is followed by one that goes on."""
    acting(cluster).act(Act(tell=tell()))
    change = Merge(on=REF, changes={"spec": {"suspend": False}})

    assert acting(cluster).act(Act(tell=tell(), writes=(change,))) is Outcome.DONE
    assert len(cluster.events) == 1
    assert cluster.objects[JOB]["spec"]["suspend"] is False
    acting(cluster).act(Act(tell=tell("2")))
    assert len(cluster.events) == 2


@pytest.mark.parametrize(
    "write",
    [
        Merge(on=REF, changes={"spec": {"suspend": False}}),
        Operate(on=REF, operations=({"op": "remove", "path": "/spec/suspend"},)),
        Remove(on=REF),
    ],
    ids=["merge", "operate", "remove"],
)
def test_another_object_of_the_same_name_is_left_alone(cluster: Cluster, write: Any) -> None:
    """A person deleted the Job and made it anew meanwhile."""
    cluster.put(JOB, {"metadata": {"uid": "other"}, "spec": {"suspend": True}})

    assert acting(cluster).act(Act(tell=tell(), writes=(write,))) is not Outcome.DONE
    assert cluster.objects[JOB]["spec"] == {"suspend": True}


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (None, Outcome.AGAIN),
        (503, Outcome.AGAIN),
        (429, Outcome.AGAIN),
        (409, Outcome.AGAIN),
        (403, Outcome.REFUSED),
        (422, Outcome.REFUSED),
        (404, Outcome.GONE),
    ],
)
def test_what_fails_ends_the_act(cluster: Cluster, status: int | None, outcome: Outcome) -> None:
    """And is told as what it means for another try; nothing is counted as moved."""
    counted: list[Cause] = []
    cluster.refused["patch", JOB] = status
    writes = (Merge(on=REF, changes={"spec": {"suspend": False}}), Remove(on=REF))

    assert acting(cluster, counted).act(Act(tell=tell(), writes=writes)) is outcome
    assert JOB in cluster.objects
    assert counted == []


def test_an_event_that_may_not_be_made_keeps_the_write_back(cluster: Cluster) -> None:
    """Without the right to tell, nothing is done in silence."""
    event = f"/api/v1/namespaces/team/events/{tell().name}"
    cluster.refused["create", event] = 403

    assert acting(cluster).act(Act(tell=tell(), writes=(Remove(on=REF),))) is Outcome.REFUSED
    assert JOB in cluster.objects


def test_a_note_is_bounded_and_plain(cluster: Cluster) -> None:
    """Names of other people's objects may be in it."""
    long = Tell(about=REF, reason=Reason.MOVED, note="a\nb\x1b[31m" + "x" * 5000)
    acting(cluster).act(Act(tell=long))

    (event,) = cluster.events
    assert event["message"].startswith("a bx")
    assert len(event["message"]) <= 1000
    assert len(event["metadata"]["name"]) <= 253


def test_kinds_are_asked_for_once(cluster: Cluster) -> None:
    """Every write needs the plural of its kind."""
    objects: Any = cluster
    discovery = Discovery(objects)
    for _ in range(3):
        assert discovery.path(REF) == JOB

    assert cluster.asked.count(("get", "/apis/batch/v1")) == 1


def test_an_event_that_is_there_is_not_sent_again(cluster: Cluster) -> None:
    """A duty may say the same at every look: the API server hears it once."""
    who = acting(cluster)
    for _ in range(3):
        assert who.act(Act(tell=tell())) is Outcome.DONE

    assert [verb for verb, _ in cluster.asked].count("create") == 1
