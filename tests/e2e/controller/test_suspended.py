"""Suspended workloads are steered by the controller, and started by whoever held them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from admission.steer.terms import RECORD
from tests.e2e.controller.apart import Apart, job
from tests.e2e.controller.conftest import Start
from tests.e2e.jobset import resnet50_jobset
from tests.e2e.nodes import A10, A100, create
from tests.e2e.processes import poll_until
from tests.e2e.workloads import SPEC_ANNOTATION, pod_spec, resnet50_spec

pytestmark = pytest.mark.e2e

BATCH = 192
"""Takes 18 GiB: an A10 and an A100 hold it, a T4 does not."""


def test_job_and_jobset_are_steered_while_they_are_held(alone: Apart, start_alone: Start) -> None:
    """Anew when a card comes, never twice the same, and not once they have started."""
    namespace = alone.namespace()
    spec = {SPEC_ANNOTATION: json.dumps(resnet50_spec(batch_size=BATCH))}
    made = alone.create(job(namespace, spec, pod=pod_spec(num_gpus=1, card=None), suspend=True))
    jobset = resnet50_jobset(namespace, batch_size=BATCH, card=A100)
    jobset["spec"]["suspend"] = True
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    del pod["nodeSelector"]
    jobset = dict(alone.create(jobset))
    queued = job(namespace, spec, pod=pod_spec(num_gpus=1, card=None), suspend=True)
    queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "main"}
    queued = dict(alone.create(queued))
    controller = start_alone()

    poll_until(lambda: bool(record(alone.now(made))), what="terms on the Job", seconds=240)
    poll_until(lambda: bool(selector(alone.now(jobset))), what="a card for the JobSet")

    first = alone.now(made)
    assert first["spec"]["suspend"] is True
    assert selector(alone.now(jobset)) == {"nvidia.com/gpu.product": A100.product}
    assert alone.reasons(made) == alone.reasons(jobset) == ["GpuMemorySteered"]
    create(A10, alone.core)
    try:
        poll_until(lambda: record(alone.now(made)) != record(first), what="other terms")
        poll_until(lambda: controller.value("vramgate_controller_queue") == 0, what="nothing to do")
        second = alone.now(made)
        assert alone.reasons(made) == ["GpuMemorySteered"] * 2
        assert second["metadata"]["generation"] == first["metadata"]["generation"] + 1

        resumed = alone.api.patch(made, {"spec": {"suspend": False}})
        assert resumed.status == 200, resumed.message
        poll_until(lambda: bool(bound(alone, made)), what="a node for its pod")
        # The A10 holds it as well, and the smallest card that does is preferred.
        assert bound(alone, made) == [A10.name]
    finally:
        alone.core.delete_node(A10.name)

    assert record(alone.now(queued)) is None
    assert alone.reasons(queued) == []


def record(obj: dict[str, Any]) -> str | None:
    """Return what the pod template of a Job says that we added."""
    found: str | None = obj["spec"]["template"]["metadata"].get("annotations", {}).get(RECORD)
    return found


def selector(obj: dict[str, Any]) -> dict[str, str]:
    """Return the nodeSelector of a JobSet's pods."""
    template = obj["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    return dict(template["spec"].get("nodeSelector") or {})


def bound(alone: Apart, made: Any) -> list[str]:
    """Return the nodes that pods of a Job were bound to."""
    return [pod["spec"]["nodeName"] for pod in alone.pods(made) if pod["spec"].get("nodeName")]
