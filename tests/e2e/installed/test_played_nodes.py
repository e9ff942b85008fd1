"""Jobs on nodes that kwok plays: where they run, and that they end."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from tests.e2e.installed.conftest import LARGE, MEDIUM, NODES, SMALL, job_in_pool
from tests.e2e.kwok.player import EXIT
from tests.e2e.nodes import A10, A100, T4
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("warm")]


def test_each_of_five_jobs_runs_on_the_smallest_card_that_holds_it_and_ends(
    api: ApiServer, core: client.CoreV1Api
) -> None:
    """Placed by the real scheduler; what its pod comes to is what becomes of each Job."""
    cards = {node.name: node.product for node in NODES}
    batch_sizes = (SMALL, LARGE, MEDIUM, SMALL, MEDIUM)
    jobs = [job_in_pool(batch_size) for batch_size in batch_sizes]

    for job in jobs:
        answer = api.create(job)
        assert answer.status == 201, answer.message
    pods = [running_pod(core, job) for job in jobs]
    for pod, code in zip(pods, ("0", "1", "0", "0", "0"), strict=True):
        annotations = {"metadata": {"annotations": {EXIT: code}}}
        core.patch_namespaced_pod(pod.metadata.name, "enforce", annotations)

    landed = zip(batch_sizes, (cards[pod.spec.node_name] for pod in pods), strict=True)
    assert sorted(landed) == [
        (SMALL, T4.product),
        (SMALL, T4.product),
        (MEDIUM, A10.product),
        (MEDIUM, A10.product),
        (LARGE, A100.product),
    ]
    assert [ending(api, job) for job in jobs] == [
        "Complete",
        "Failed",
        "Complete",
        "Complete",
        "Complete",
    ]


def running_pod(core: client.CoreV1Api, job: dict[str, Any]) -> client.V1Pod:
    """Return the pod of *job* once it runs."""
    selector = f"batch.kubernetes.io/job-name={job['metadata']['name']}"
    found: list[client.V1Pod] = []

    def runs() -> bool:
        found[:] = core.list_namespaced_pod("enforce", label_selector=selector).items
        return bool(found) and found[0].status.phase == "Running"

    poll_until(runs, what=f"the pod of {selector} to run")
    return found[0]


def ending(api: ApiServer, job: dict[str, Any]) -> str:
    """Return how *job* ended, once it has."""
    found: list[str] = []

    def has_ended() -> bool:
        conditions = api.get(job).body["status"].get("conditions") or ()
        endings = ("Complete", "Failed")
        found[:] = [each["type"] for each in conditions if each["type"] in endings]
        return bool(found)

    poll_until(has_ended, what=f"the end of {job['metadata']['name']}")
    return found[0]
