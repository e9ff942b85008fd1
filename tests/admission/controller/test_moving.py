"""How far a move is, and when the next one's time comes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from admission.controller.acts import Cause
from admission.controller.movable import has_ended, is_idle, no_retry, suspension
from admission.controller.moving import MOVING, Moving, Step, is_moving, moving_of, wanted
from admission.controller.refs import Ref
from tests.admission.controller.test_deaths import view

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MOVE = Moving(step=Step.DONE, cause=Cause.OUT_OF_MEMORY, since=NOW, count=2, pods=("a", "b"))


def test_what_is_written_is_read() -> None:
    """By the next controller."""
    assert moving_of({MOVING: MOVE.text()}) == MOVE
    assert not is_moving({MOVING: MOVE.text()})
    assert is_moving({MOVING: MOVE.at(Step.WANTED, NOW).text()})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "{}",
        "x" * 10_000,
        MOVE.text().replace("2,", "0,"),
        MOVE.text().replace("done", "x"),
        MOVE.text().replace("2030", "none"),
    ],
)
def test_what_makes_no_sense_is_no_move(text: str) -> None:
    """Whoever wrote it."""
    assert moving_of({MOVING: text}) is None


def test_pauses_are_doubled() -> None:
    """From the end of the last move on."""
    seconds = []
    before: Moving | None = None
    for _ in range(4):
        move = wanted(
            before, cause=Cause.OUT_OF_MEMORY, now=NOW, pause_seconds=30, settle_seconds=0
        )
        seconds.append((move.since - NOW).total_seconds())
        before = move.at(Step.DONE, NOW)

    assert seconds == [0, 30, 60, 120]
    assert before is not None
    assert before.count == 4


def test_a_pause_that_is_over_is_not_waited_for() -> None:
    """A job that ran for a day."""
    move = wanted(
        MOVE,
        cause=Cause.OUT_OF_MEMORY,
        now=NOW + timedelta(days=1),
        pause_seconds=30,
        settle_seconds=0,
    )

    assert move.since == NOW + timedelta(days=1)


def obj(kind: str, version: str, **fields: Any) -> dict[str, Any]:
    """Return an object of *kind*."""
    return {"apiVersion": version, "kind": kind, "metadata": {}, **fields}


def job(*, failed: int = 0, limit: int | None = None, **status: Any) -> dict[str, Any]:
    """Return a Job."""
    spec = {} if limit is None else {"backoffLimit": limit}
    return obj("Job", "batch/v1", spec=spec, status={"failed": failed, **status})


def jobset(*, most: int, restarts: int) -> dict[str, Any]:
    """Return a JobSet."""
    return obj(
        "JobSet",
        "jobset.x-k8s.io/v1alpha2",
        spec={"failurePolicy": {"maxRestarts": most}},
        status={"restartsCountTowardsMax": restarts},
    )


def pytorchjob(*policies: str, kind: str = "PyTorchJob") -> dict[str, Any]:
    """Return a job of kubeflow.org with a role for each of *policies*; empty says nothing."""
    roles = {
        f"R{number}": {"restartPolicy": policy} if policy else {}
        for number, policy in enumerate(policies)
    }
    return obj(kind, "kubeflow.org/v1", spec={"pytorchReplicaSpecs": roles}, status={})


OVER = [{"type": "Failed", "status": "True"}]


@pytest.mark.parametrize(
    ("chain", "num_failed", "is_left"),
    [
        ([job(limit=0)], 1, False),
        ([job(limit=1)], 1, True),
        ([job(limit=1, failed=2)], 0, False),
        ([job()], 6, True),
        ([job()], 7, False),
        ([job(limit=6, conditions=OVER)], 0, False),
        ([job(limit=0), jobset(most=1, restarts=0)], 1, True),
        ([job(limit=0), jobset(most=1, restarts=1)], 1, False),
        ([job(limit=3), jobset(most=0, restarts=0)], 1, True),
        ([pytorchjob("OnFailure")], 0, True),
        ([pytorchjob("")], 0, True),
        ([pytorchjob("Never")], 0, False),
        ([pytorchjob("ExitCode")], 0, False),
        ([pytorchjob("", kind="TFJob")], 0, False),
        ([obj("Job", "batch.volcano.sh/v1alpha1", spec={}, status={})], 0, True),
        ([], 0, False),
    ],
)
def test_whether_a_retry_is_left(
    chain: list[dict[str, Any]], num_failed: int, is_left: bool
) -> None:
    """By the rules of each kind; a JobSet makes its Jobs anew."""
    assert (no_retry(chain, num_failed=num_failed) == "") is is_left


def test_a_job_is_idle_once_it_says_so_and_its_pods_are_gone() -> None:
    """Not while one of them ends."""
    suspended = job(conditions=[{"type": "Suspended", "status": "True"}])
    running = view()
    running._item["status"]["phase"] = "Running"

    assert is_idle(suspended, [view()])
    assert not is_idle(suspended, [running])
    assert not is_idle(job(), [])
    assert not is_idle(job(active=1, conditions=[{"type": "Suspended", "status": "True"}]), [])


def test_what_goes_has_ended() -> None:
    """Nobody moves it any more."""
    going = job()
    going["metadata"]["deletionTimestamp"] = "2030"

    assert has_ended(going)
    assert has_ended(job(conditions=OVER))
    assert not has_ended(job())


@pytest.mark.parametrize(
    ("version", "kind", "place"),
    [
        ("batch/v1", "Job", ("spec", "suspend")),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", ("spec", "suspend")),
        ("kubeflow.org/v1", "PyTorchJob", ("spec", "runPolicy", "suspend")),
        ("batch.volcano.sh/v1alpha1", "Job", None),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob", None),
        ("v1", "Pod", None),
    ],
)
def test_where_kinds_are_suspended(version: str, kind: str, place: tuple[str, ...] | None) -> None:
    """None where nobody could change what a new pod is made of."""
    ref = Ref(api_version=version, kind=kind, namespace="team", name="train", uid="1")

    assert suspension(ref) == place
