"""The controller beside the webhook, as the chart installs it: its rights are enough, and used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from kubernetes import client

from tests.builders import GPU
from tests.chart.rendering import NAMESPACE
from tests.e2e.installed.conftest import CARDS
from tests.e2e.installed.release import SYSTEM, Release
from tests.e2e.kubelet.network import on_loopback
from tests.e2e.nodes import POOL, GpuNode
from tests.e2e.processes import fetch, free_ports, poll_until
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e

CONTROLLER = "app.kubernetes.io/component=controller"
WEBHOOK = "app.kubernetes.io/component=webhook"
LEADS = "vramgate_controller_leads 1.0"
SECONDS = 120.0
NAME = "dies"


@pytest.fixture
def controller(installed: Release, core: client.CoreV1Api) -> Iterator[Any]:
    """Install the controller too, and give its pod and the port of its plain routes."""
    (port,) = free_ports(1)
    installed.upgrade({}, controller={"enabled": True, "port": port, "nodeSelector": SYSTEM})
    (pod,) = core.list_namespaced_pod(NAMESPACE, label_selector=CONTROLLER).items
    yield pod, port
    installed.upgrade({})
    listed = partial(core.list_namespaced_pod, NAMESPACE, label_selector=CONTROLLER)
    poll_until(lambda: not listed().items, what="the end of the controller's pod")


@pytest.mark.usefixtures("warm")
def test_controller_leads_follows_everything_and_acts(
    api: ApiServer,
    core: client.CoreV1Api,
    installed: Release,
    controller: Any,
    gpu_nodes: tuple[GpuNode, ...],
) -> None:
    """No watch and no act is refused: a death is told, remembered, and written on the pod."""
    pod, port = controller
    text = partial(_metrics, pod, port)
    poll_until(lambda: LEADS in text(), what="to lead", seconds=SECONDS)
    made = _pod()
    answer = api.create(made)
    assert answer.status == 201, answer.message
    poll_until(lambda: _phase(api, made) == "Running", what="the pod to run", seconds=SECONDS)

    core.patch_namespaced_pod_status(NAME, "warn", {"status": _death()})
    poll_until(partial(_is_told, api), what="an Event about its death", seconds=SECONDS)
    poll_until(lambda: _learnt(api, made), what="what it taught, on the pod", seconds=SECONDS)

    learned = api.read(f"/api/v1/namespaces/{NAMESPACE}/configmaps/vramgate-learned")
    assert NAME in learned.body["data"]["deaths.json"]
    seen = text()
    assert "vramgate_watch_interrupted{resource=" not in seen
    refused = [line for line in seen.splitlines() if 'outcome="refused"' in line]
    assert refused
    assert all(line.endswith(" 0.0") for line in refused), refused
    for replica in core.list_namespaced_pod(NAMESPACE, label_selector=WEBHOOK).items:
        assert 'vramgate_watch_interrupted{resource="configmaps"} 0.0' in installed.metrics(replica)
    api.delete(made, grace_seconds=0)


def _metrics(pod: client.V1Pod, port: int) -> str:
    return fetch(f"http://{on_loopback(pod.status.pod_ip)}:{port}/metrics").decode()


def _pod() -> dict[str, Any]:
    """Return a pod of nobody's that says what it trains."""
    spec = {
        "framework": "pytorch",
        "model": {"source": "torchvision", "name": "resnet50"},
        "input": {"batchSize": 64, "imageSize": [3, 224, 224]},
    }
    container = {"name": "train", "image": "x", "resources": {"limits": {GPU: "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": NAME,
            "namespace": "warn",
            "annotations": {"vramgate.dev/spec": json.dumps(spec)},
        },
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {POOL: CARDS},
            "containers": [container],
        },
    }


def _death() -> dict[str, Any]:
    ended = {
        "exitCode": 1,
        "reason": "Error",
        "message": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "finishedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    container = {"name": "train", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    return {"phase": "Failed", "containerStatuses": [{**container, "state": {"terminated": ended}}]}


def _phase(api: ApiServer, made: dict[str, Any]) -> str:
    return str(api.get(made).body.get("status", {}).get("phase"))


def _is_told(api: ApiServer) -> bool:
    answer = api.read("/api/v1/namespaces/warn/events")
    return any(
        each["involvedObject"]["name"] == NAME and each["reason"] == "GpuOutOfMemory"
        for each in answer.body.get("items", ())
    )


def _learnt(api: ApiServer, made: dict[str, Any]) -> bool:
    annotations = api.get(made).body["metadata"].get("annotations", {})
    return "vramgate.dev/retry-min-bytes" in annotations
