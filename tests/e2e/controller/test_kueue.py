"""Jobs in a queue of the real Kueue get flavors whose cards hold them, by our AdmissionCheck."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from kubernetes import client

from admission.learning.lesson import LEARNT
from tests.e2e.cluster import ControlPlane
from tests.e2e.conftest import is_established
from tests.e2e.controller.conftest import Start
from tests.e2e.controller.process import Controller
from tests.e2e.controller.queues import CHECK, Team, check, example, flavors, has, settled
from tests.e2e.jobset import resnet50_jobset
from tests.e2e.nodes import A100, T4
from tests.e2e.operators.catalog import JOBSET, KUEUE
from tests.e2e.operators.made import unscheduled
from tests.e2e.operators.running import running
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook
from tests.e2e.workloads import job_without_gpus, resnet50_job, resnet50_pytorchjob, unreadable_job

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("_kueue")]

MESSAGE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
SMALL, LARGE, HUGE = 64, 256, 1024
"""Batch sizes: for 16 GiB; too large for that, not for 40 GiB; too large for both."""


@pytest.fixture(scope="module")
def _kueue(
    plane: ControlPlane,
    api: ApiServer,
    nodes: tuple[Any, ...],
    pytorchjobs: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Run Kueue, with a flavor a card and our check."""
    definitions = [*KUEUE.definitions(), *JOBSET.definitions()]
    for document in definitions:
        answer = api.create(document)
        assert answer.status in (201, 409), answer.message
    for document in definitions:
        poll_until(
            partial(lambda one: is_established(api.get(one).body), document),
            what=document["metadata"]["name"],
        )
    with running((JOBSET, KUEUE), plane, api, directory=tmp_path_factory.mktemp("kueue")):
        made = [*flavors(), check()]
        for document in made:
            answer = api.create(document)
            assert answer.status == 201, answer.message
        yield
        for document in reversed(made):
            api.delete(document)


@pytest.fixture
def team(api: ApiServer, core: client.CoreV1Api) -> Iterator[Team]:
    """Have a namespace with a queue, gone after the test."""
    made = Team(api, core)
    yield made
    made.close()


def test_each_of_a_mixed_queue_gets_a_flavor_that_holds_it(
    team: Team, start_controller: Start
) -> None:
    """One of them is moved, the impossible one is Rejected with a reason, its quota given back."""
    team.open(mode="warn")  # at its CREATE, the webhook would deny the impossible one
    small, large, pinned = (
        team.job(batch_size=SMALL),
        team.job(batch_size=LARGE),
        team.job(batch_size=LARGE, pinned=True),
    )
    huge = team.job(batch_size=HUGE)
    unread = unreadable_job(team.name, card=T4)
    del unread["spec"]["template"]["spec"]["nodeSelector"]
    unread, plain = team.submit(unread), team.submit(job_without_gpus(team.name))
    team.enforce()
    team.queue()

    controller = start_controller()

    settled("the small job's flavor", lambda: team.flavor(small) == T4.name)
    settled("the large job's flavor", lambda: team.flavor(large) == A100.name)
    settled("the pinned job's flavor", lambda: team.flavor(pinned) == A100.name)
    settled("what nobody can read", lambda: team.flavor(unread) == T4.name)
    settled("what asks for no GPU", lambda: has(team.workload(plain), "Admitted"))
    settled("the impossible one's end", lambda: team.workload(huge)["spec"]["active"] is False)
    # Given back: of the smaller cards those of two jobs are taken, of four that asked for them.
    settled("the quota", lambda: team.reserved() == {T4.name: 2, A100.name: 2}, seconds=30)
    assert "fits" in team.answer(small)["message"]
    (led,) = team.events(large, "GpuMemoryMoved")
    assert A100.name in led
    assert "GiB" in led
    (refused,) = team.events(huge, "GpuMemoryTooLarge")
    assert "no flavor of queue" in refused
    assert A100.product in refused
    assert has(team.workload(huge), "DeactivationTarget") or has(team.workload(huge), "Evicted")
    assert "cannot tell" in team.answer(unread)["message"]
    assert not team.events(pinned, "GpuMemoryMoved")
    assert controller.value("vramgate_rescheduled_total", reason="queue") == 1
    assert "Traceback" not in controller.log


def test_what_no_flavor_holds_is_let_through_with_a_warning_in_mode_warn(
    team: Team, start_controller: Start
) -> None:
    """Nothing is blocked where nobody asked to enforce."""
    team.open(mode="warn")
    huge = team.job(batch_size=HUGE)
    team.queue()

    start_controller(policy={"mode": "enforce"})

    settled("its admission", lambda: team.flavor(huge) == T4.name)
    assert "No flavor of queue" in team.answer(huge)["message"]
    assert len(team.events(huge, "GpuMemoryTooLarge")) == 1


def test_no_estimate_in_time_lets_it_through_and_says_so(
    team: Team, start_controller: Start
) -> None:
    """A guess would be bad, a queue that stands still is worse."""
    team.open()
    job = team.job(batch_size=LARGE + 1)  # nobody has estimated it before
    team.queue()

    start_controller(gateSeconds=1)

    settled("its admission", lambda: has(team.workload(job), "Admitted"))
    assert "no estimate came within 1 s" in team.answer(job)["message"]
    assert len(team.events(job, "GpuMemoryNotEstimated")) == 1


def test_killed_between_steps_it_comes_to_the_same_end(team: Team, start_controller: Start) -> None:
    """Killed as soon as anything was written, thrice over: led once, answered once."""
    team.open()
    large, small = team.job(batch_size=LARGE), team.job(batch_size=SMALL)
    team.queue()
    controller = start_controller()

    for before in (1, 2, 4):
        # What is written next: the terms, the Workload's end, an answer.
        _kill_at_write(controller, team, (large, small), before)

    settled("the large job's flavor", lambda: team.flavor(large) == A100.name)
    settled("the small job's flavor", lambda: team.flavor(small) == T4.name)
    assert len(team.events(large, "GpuMemoryMoved")) == 1
    annotations = team.now(large)["metadata"]["annotations"]
    assert annotations["vramgate.dev/queue-moves"] == "1"
    assert len(team.events(large, "GpuMemoryChecked")) == 1
    assert len(team.events(small)) == 1
    required = team.now(large)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [each["key"] for each in term["matchExpressions"]].count("nvidia.com/gpu.product") == 1


def test_a_death_sends_a_queued_job_to_a_larger_flavor(team: Team, start_controller: Start) -> None:
    """It goes back to its queue, not at once, and comes back on a card that gives more."""
    team.open()
    job = team.job(batch_size=SMALL)
    team.queue()
    start_controller(movePauseSeconds=1, moves=["dead"])
    settled("its first flavor", lambda: team.flavor(job) == T4.name)

    _die(team, job)

    settled("a larger flavor", lambda: team.flavor(job) == A100.name)
    assert len(team.events(job, "GpuMemoryRequeued")) == 1
    assert len(team.events(job, "GpuMemoryMoved")) == 1


def test_a_death_on_the_largest_flavor_moves_nothing(team: Team, start_controller: Start) -> None:
    """There is no other: it stays where it is."""
    team.open()
    job = team.job(batch_size=SMALL, pinned=True)
    team.queue()
    controller = start_controller(movePauseSeconds=1, moves=["dead"])
    settled("its flavor", lambda: team.flavor(job) == A100.name)

    _die(team, job)
    settled("what it taught", lambda: LEARNT in team.now(job)["metadata"]["annotations"])

    other = team.job(batch_size=SMALL)  # once this is answered, the death was looked at too
    settled("another job's flavor", lambda: team.flavor(other) == T4.name)
    assert not team.events(job, "GpuMemoryRequeued")
    assert team.flavor(job) == A100.name
    assert "Traceback" not in controller.log


def test_the_check_is_active_once_somebody_answers_it(
    api: ApiServer, start_controller: Start
) -> None:
    """Until then its queues admit nothing. The API server takes the rest of the example too."""
    for document in example()[1:]:
        answer = api.create(document, dry_run=True, strict=True)
        assert answer.status == 201, answer.message
    start_controller()

    settled("the condition", lambda: _is_active(api))
    assert api.get(check()).body["metadata"]["name"] == CHECK


@pytest.mark.parametrize("kind", ["Job", "JobSet", "PyTorchJob"])
def test_what_the_webhook_steered_is_led_on_where_flavors_say_no_memory(
    team: Team, start_controller: Start, webhook: Webhook, kind: str
) -> None:
    """Terms of memory, labels of products; each kind is led by what it lets change."""
    before = webhook.num_reviews(action="deny")
    team.open()
    job = team.submit(_large(kind, team.name))
    team.queue()

    start_controller()

    settled("its flavor", lambda: team.flavor(job) == A100.name)
    assert len(team.events(job, "GpuMemoryMoved")) == 1
    assert webhook.num_reviews(action="deny") == before


def _large(kind: str, namespace: str) -> dict[str, Any]:
    """Return an object of *kind* that only the larger card holds, and that may go to both."""
    match kind:
        case "JobSet":
            document = resnet50_jobset(namespace, batch_size=LARGE, card=T4)
            template = document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        case "PyTorchJob":
            document = resnet50_pytorchjob(namespace, batch_size=LARGE, card=T4)
            template = document["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
        case _:
            document = resnet50_job(namespace, batch_size=LARGE, card=T4)
            template = document["spec"]["template"]
    unscheduled(template)
    return document


def _is_active(api: ApiServer) -> bool:
    return has(api.get(check()).body, "Active")


def _kill_at_write(controller: Controller, team: Team, jobs: tuple[Any, ...], number: int) -> None:
    """Kill *controller* once it has written *number* things, and start it again."""

    def written() -> int:
        events = sum(len(team.events(job)) for job in jobs)
        led = len([job for job in jobs if "queue-moves" in json.dumps(team.now(job)["metadata"])])
        ready = len([job for job in jobs if team.answer(job).get("state") == "Ready"])
        return events + led + ready

    settled(f"{number} writes", lambda: written() >= number)
    controller.kill()
    controller.start()


def _die(team: Team, job: dict[str, Any]) -> None:
    """Have the pod of *job* die of CUDA out-of-memory, as its kubelet would say it."""
    selector = f"batch.kubernetes.io/job-name={job['metadata']['name']}"

    def bound() -> list[client.V1Pod]:
        pods = team.core.list_namespaced_pod(team.name, label_selector=selector).items
        return [pod for pod in pods if pod.spec.node_name]

    poll_until(lambda: bool(bound()), what="a pod on a node")
    (pod,) = bound()
    terminated = {"exitCode": 1, "reason": "Error", "message": MESSAGE, "finishedAt": _now()}
    container = {
        "name": "train",
        "image": "example.com/train:1",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": terminated},
    }
    status = {"phase": "Failed", "containerStatuses": [container]}
    team.core.patch_namespaced_pod_status(pod.metadata.name, team.name, {"status": status})


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
