"""Jobs that die of too little GPU memory, on the real control plane, by the real controllers."""

from __future__ import annotations

from functools import partial

import pytest
from kubernetes import client

from tests.e2e.controller.deaths.conftest import NODES
from tests.e2e.controller.deaths.dying import (
    EVERY,
    Document,
    dying_job,
    dying_jobset,
    dying_pytorchjob,
    ending,
    events,
    landed,
    notes_on,
    pods,
    remove,
)
from tests.e2e.controller.process import Controller
from tests.e2e.nodes import A10
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e

LARGE = {node.name for node in NODES if node.product == A10.product}
RETRY = "vramgate.dev/retry-min-bytes"
OOM, MOVED, NOT_MOVED = "GpuOutOfMemory", "GpuMemoryMoved", "GpuMemoryNotMoved"
EARLIER = "an earlier run of the same containers died"


def reasons(core: client.CoreV1Api, document: Document) -> list[str]:
    """Return the reasons of what was said of *document*."""
    return [reason for reason, _ in events(core, document)]


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_job_that_dies_on_a_small_card_ends_on_a_larger_one(
    api: ApiServer, core: client.CoreV1Api, controller: Controller, policy: str
) -> None:
    """Without a hand: told once, suspended, steered, resumed, complete."""
    before = controller.value("vramgate_oom_total", framework="pytorch", predicted="false")
    moved = controller.value("vramgate_rescheduled_total", reason="out-of-memory")
    job = dying_job(retries=6, policy=policy)

    answer = api.create(job)

    assert answer.status == 201, answer.message
    poll_until(lambda: ending(api, job) == "Complete", what=f"{policy} job to end")
    said = events(core, job)
    assert [reason for reason, _ in said] == [OOM, MOVED, MOVED]
    assert "died on Tesla-T4 that gave it 14." in said[0][1]
    assert "estimated" in said[0][1]
    assert "moved to a card that gives it at least" in said[0][1]
    assert int(notes_on(api, job)[RETRY]) > 14 << 30
    assert landed(core, job) <= LARGE
    counted = controller.value("vramgate_oom_total", framework="pytorch", predicted="false")
    assert counted == before + 1
    assert controller.value("vramgate_rescheduled_total", reason="out-of-memory") == moved + 1


def test_a_job_without_retries_is_told_and_steered_when_it_is_created_again(
    api: ApiServer, core: client.CoreV1Api, controller: Controller
) -> None:
    """The next of its name goes to the large card at once, with a warning that says why."""
    job = dying_job(retries=0)
    assert api.create(job).status == 201
    poll_until(lambda: ending(api, job) == "Failed", what="the job to fail")
    poll_until(lambda: reasons(core, job) == [OOM], what="it to be told")
    assert "no retry is left (backoffLimit 0 is used up" in events(core, job)[0][1]
    remove(core, job)
    # It is told first, then written, then heard of by the webhook.
    poll_until(lambda: knows_of_it(api, job), what="the webhook to know of it")

    answer = api.create(job)

    assert answer.status == 201, answer.message
    assert any(EARLIER in text for text in answer.warnings)
    poll_until(lambda: ending(api, job) == "Complete", what="the job to end")
    assert {pod.spec.node_name for pod in pods(core, job)} <= LARGE


def knows_of_it(api: ApiServer, job: Document) -> bool:
    """Return whether a job like it would be warned of."""
    return any(EARLIER in text for text in api.create(job, dry_run=True).warnings)


def test_another_batch_size_starts_afresh(
    api: ApiServer, core: client.CoreV1Api, controller: Controller
) -> None:
    """What died was another job, though it had the name."""
    job = dying_job(retries=0)
    assert api.create(job).status == 201
    poll_until(lambda: reasons(core, job) == [OOM], what="it to be told")
    remove(core, job)
    poll_until(lambda: knows_of_it(api, job), what="the webhook to know of it")
    job["spec"]["template"]["spec"]["containers"][0]["args"] = ["--batch-size=32"]

    answer = api.create(job, dry_run=True)

    assert answer.status == 201
    assert not any(EARLIER in text for text in answer.warnings)


@pytest.mark.parametrize("make", [partial(dying_jobset, restarts=3), dying_pytorchjob])
def test_jobs_of_other_controllers_are_moved(
    api: ApiServer, core: client.CoreV1Api, controller: Controller, make: partial[Document]
) -> None:
    """A JobSet by a nodeSelector, a PyTorchJob by its template."""
    job = make()

    answer = api.create(job)

    assert answer.status == 201, answer.message
    poll_until(lambda: ending(api, job) == "Complete", what="the job to end")
    assert reasons(core, job) == [OOM, MOVED, MOVED]


def test_a_job_that_no_card_holds_is_not_moved(
    api: ApiServer, core: client.CoreV1Api, controller: Controller
) -> None:
    """It died on the largest card there is: told so, and left to its own controller."""
    job = dying_job(retries=2, on=EVERY)

    assert api.create(job).status == 201

    poll_until(lambda: ending(api, job) == "Failed", what="the job to fail")
    poll_until(lambda: reasons(core, job).count(OOM) == 2, what="both deaths to be told")
    assert sorted(reasons(core, job)) == sorted([OOM, MOVED, MOVED, OOM])
    assert any("no larger card" in message for _, message in events(core, job))
