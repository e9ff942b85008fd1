"""The objects that duties are tried on: pods, Jobs, CronJobs and PyTorchJobs with a known need."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import jsonpatch

from admission.codes import Operation
from admission.steer.gates import GATE
from tests.admission.controller.scene import Scene, owner, spec_note
from tests.builders import GPU

JOB = "/apis/batch/v1/namespaces/team/jobs/train"
CRONJOB = "/apis/batch/v1/namespaces/team/cronjobs/train"
PYTORCHJOB = "/apis/kubeflow.org/v1/namespaces/team/pytorchjobs/train"
POD = "/api/v1/namespaces/team/pods/train-0"
CREATED = "2030-01-01T00:00:00Z"


def container(*, gpus: int = 1) -> dict[str, Any]:
    """Return a container whose command says nothing of its model."""
    return {
        "name": "train",
        "image": "example.com/train:1",
        "command": ["python", "train.py"],
        "resources": {"limits": {GPU: str(gpus)}},
    }


def pod(
    batch_size: int | None = None,
    *,
    gated: bool = False,
    notes: dict[str, str] | None = None,
    owners: Sequence[dict[str, Any]] = (),
    gpus: int = 1,
    **spec: Any,
) -> dict[str, Any]:
    """Return a Pod; with *batch_size* it says what it trains."""
    own = spec_note(batch_size) if batch_size is not None else {}
    gates = {"schedulingGates": [{"name": "other"}, {"name": GATE}]} if gated else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-0",
            "namespace": "team",
            "creationTimestamp": CREATED,
            "annotations": {**own, **(notes or {})},
            "ownerReferences": list(owners),
        },
        "spec": {"containers": [container(gpus=gpus)], **gates, **spec},
        "status": {"phase": "Pending"},
    }


def job(batch_size: int | None, *, notes: dict[str, str] | None = None, **spec: Any) -> Any:
    """Return a Job; with *batch_size* it says what it trains."""
    own = spec_note(batch_size) if batch_size is not None else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train",
            "namespace": "team",
            "generation": 1,
            "annotations": {**own, **(notes or {})},
        },
        "spec": {"template": {"spec": {"containers": [container()]}}, **spec},
        "status": {},
    }


def cronjob(batch_size: int, *, notes: dict[str, str] | None = None) -> Any:
    """Return a CronJob of `job`."""
    made = job(batch_size, notes=notes)
    return {**made, "kind": "CronJob", "spec": {"jobTemplate": {"spec": made["spec"]}}}


def pytorchjob(batch_size: int) -> Any:
    """Return a PyTorchJob of one Master."""
    made = job(batch_size)
    template = {"spec": {"containers": [{**container(), "name": "pytorch"}]}}
    master = {"replicas": 1, "template": template}
    return {
        **made,
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "spec": {"pytorchReplicaSpecs": {"Master": master}},
    }


async def steered(scene: Scene, obj: dict[str, Any]) -> dict[str, Any]:
    """Return *obj* as `/mutate` lets it in."""
    _, patch = await scene.judges.steered(obj, operation=Operation.CREATE)
    found: dict[str, Any] = jsonpatch.apply_patch(deepcopy(obj), [dict(step) for step in patch])
    return found


def pod_of(root: dict[str, Any], path: str, template: dict[str, Any]) -> dict[str, Any]:
    """Return the pod that the controller of *root* makes of *template*, fit for no node."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/2 nodes are available",
        "lastTransitionTime": CREATED,
    }
    made = {**deepcopy(template), "apiVersion": "v1", "kind": "Pod"}
    made["metadata"] = {
        **made.get("metadata", {}),
        "name": "train-0",
        "namespace": "team",
        "creationTimestamp": CREATED,
        "ownerReferences": owner(root["kind"], root["apiVersion"], path, "train"),
    }
    return {**made, "status": {"phase": "Pending", "conditions": [condition]}}


def running(name: str, node: str, *, gpus: int = 1) -> dict[str, Any]:
    """Return somebody else's pod on *node*."""
    made = pod(gpus=gpus, nodeName=node)
    made["metadata"]["name"] = name
    return {**made, "status": {"phase": "Running"}}
