"""A pod on a card that cannot hold it, since the webhook was away when its job was created."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from tests.e2e.controller.conftest import Start
from tests.e2e.controller.deaths.dying import NOBODY, dying_job, events, pods
from tests.e2e.nodes import T4
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook

pytestmark = pytest.mark.e2e

MEDIUM = 192
"""Too large for 16 GiB, well within 24."""


def unseen_job() -> dict[str, Any]:
    """Return a job that rather runs on a T4, and runs on."""
    job = dying_job(retries=0, on=NOBODY, batch_size=MEDIUM)
    template = job["spec"]["template"]
    template["metadata"] = {}
    match = {"key": "nvidia.com/gpu.product", "operator": "In", "values": [T4.product]}
    term = {"weight": 100, "preference": {"matchExpressions": [match]}}
    key = "preferredDuringSchedulingIgnoredDuringExecution"
    template["spec"]["affinity"] = {"nodeAffinity": {key: [term]}}
    return job


def test_it_is_told_and_moved_where_the_settings_want_it(
    api: ApiServer, core: client.CoreV1Api, alone: None, webhook: Webhook, start_controller: Start
) -> None:
    """By default it is only told; with `running` it goes on on a larger card."""
    job = unseen_job()
    with webhook.stopped():
        assert api.create(job).status == 201
        poll_until(lambda: nodes(core, job, "node-t4"), what="it to run on a T4")
    told = start_controller()
    poll_until(lambda: bool(events(core, job)), what="it to be told", seconds=300)
    ((reason, message),) = events(core, job)
    assert reason == "GpuMemoryWrongCard"
    assert "is on Tesla-T4, which gives it 14." in message
    assert "controller.moves has no `running`" in message
    told.stop()

    start_controller(moves=["running"])

    poll_until(lambda: nodes(core, job, "node-a10"), what="it to run on an A10", seconds=300)
    assert [reason for reason, _ in events(core, job)][-2:] == ["GpuMemoryMoved"] * 2
    assert api.get(job).body["spec"]["suspend"] is False
    api.delete(job)


def nodes(core: client.CoreV1Api, job: dict[str, Any], beginning: str) -> bool:
    """Return whether the pod of *job* runs on a node whose name begins so."""
    return any(
        pod.status.phase == "Running" and pod.spec.node_name.startswith(beginning)
        for pod in pods(core, job)
    )
