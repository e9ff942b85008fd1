"""What `helm install` leaves in the cluster, and what it says of jobs."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from typing import Any

import pytest
from kubernetes import client

from tests.chart.rendering import NAMESPACE
from tests.e2e.arrivals import Arrivals
from tests.e2e.cluster import ControlPlane
from tests.e2e.installed.conftest import NUM_THREADS
from tests.e2e.installed.release import REGISTRATIONS, Release
from tests.e2e.nodes import T4
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.workloads import job_without_gpus, resnet50_job, unreadable_job

pytestmark = pytest.mark.e2e


def test_installed_replicas_are_ready_by_their_own_probes(
    api: ApiServer, installed: Release
) -> None:
    """One a node, with a certificate that both and every registration have from one Secret."""
    pods = installed.pods()

    assert {pod.spec.node_name for pod in pods} == {"system-1", "system-2"}
    assert {is_ready(pod) for pod in pods} == {True}
    assert {pod.status.container_statuses[0].restart_count for pod in pods} == {0}
    secret = api.get(installed.secret).body["data"]
    assert {"tls.crt", "tls.key", "ca.crt"} <= secret.keys()
    for kind in REGISTRATIONS:
        webhooks = api.get(installed.registration(kind)).body["webhooks"]
        assert {each["clientConfig"]["caBundle"] for each in webhooks} == {secret["ca.crt"]}
        places = {(each["clientConfig"]["service"]["namespace"]) for each in webhooks}
        assert places == {NAMESPACE}


@pytest.mark.parametrize(
    ("namespace", "batch_size", "status", "is_warned"),
    [
        ("enforce", 256, 403, False),
        ("warn", 256, 201, True),
        ("off", 256, 201, False),
        ("enforce", 64, 201, False),
    ],
)
@pytest.mark.usefixtures("warm")
def test_job_is_judged_through_the_service(
    api: ApiServer, namespace: str, batch_size: int, status: int, is_warned: bool
) -> None:
    """Batch 256 is too large for a 16 GiB card, batch 64 is not."""
    answer = api.create(resnet50_job(namespace, batch_size=batch_size, card=T4), dry_run=True)

    assert (answer.status, bool(answer.warnings)) == (status, is_warned), answer.message
    assert status == 201 or T4.product in answer.message


@pytest.mark.usefixtures("warm")
def test_what_trains_nothing_is_skipped_and_what_has_no_gpu_is_not_sent(
    api: ApiServer, installed: Release
) -> None:
    """Of the two only the first is heard of."""
    told = skipped(unreadable_job("enforce", card=T4))
    reviewed = partial(num_reviews, installed)
    before, skipped_before = reviewed(), reviewed("skipped")

    answers = [api.create(job, dry_run=True) for job in (told, job_without_gpus("enforce"))]

    assert [(each.status, each.warnings) for each in answers] == [(201, ()), (201, ())]
    both_routes = 2
    assert reviewed() - before == reviewed("skipped") - skipped_before == both_routes


def test_both_replicas_answer(plane: ControlPlane, installed: Release, warm: None) -> None:
    """The API server takes an endpoint of the Service for each connection that it opens."""
    before = [installed.num_reviews(pod) for pod in installed.pods()]

    with Arrivals(plane, unreadable_job("enforce", card=T4), num_threads=NUM_THREADS) as arrivals:
        poll_until(
            lambda: all(
                installed.num_reviews(pod) > number
                for pod, number in zip(installed.pods(), before, strict=True)
            ),
            what="reviews of both replicas",
        )

    assert all(each.is_reviewed for each in arrivals.all)


@pytest.mark.usefixtures("warm")
def test_report_is_of_both_replicas(
    plane: ControlPlane, api: ApiServer, installed: Release
) -> None:
    """`vramgate report` reaches each pod by way of the API server."""
    job = resnet50_job("warn", batch_size=256, card=T4)
    job["spec"]["suspend"] = True  # its card is for others
    assert api.create(job).status == 201

    argv = [sys.executable, "-m", "admission", "report", "-o", "json"]
    argv += ["--kubeconfig", str(plane.credentials.kubeconfig)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert {each["name"] for each in report["replicas"]} == {
        pod.metadata.name for pod in installed.pods()
    }
    assert job["metadata"]["name"] in {each["name"] for each in report["denials"]}


def num_reviews(release: Release, *verdicts: str) -> int:
    """Return how many reviews all replicas have answered with *verdicts*, or with any."""
    return sum(release.num_reviews(pod, *verdicts) for pod in release.pods())


def skipped(job: dict[str, Any]) -> dict[str, Any]:
    """Return *job* as one that looks at its card and ends."""
    job["spec"]["template"]["spec"]["containers"][0]["command"] = ["nvidia-smi"]
    return job


def is_ready(pod: client.V1Pod) -> bool:
    """Return whether *pod* says so."""
    conditions: dict[str, str] = {each.type: each.status for each in pod.status.conditions}
    return conditions["Ready"] == "True"
