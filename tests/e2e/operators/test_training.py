"""Jobs of kubeflow.org meet Vramgate, the real training-operator and its webhooks."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from kubernetes import client

from tests.e2e.nodes import T4
from tests.e2e.operators.made import (
    IGNORED,
    LARGE,
    NAMESPACE,
    SMALL,
    affinity_of,
    denials,
    played,
    pods_of,
    unscheduled,
)
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook
from tests.e2e.workloads import resnet50_pytorchjob

pytestmark = pytest.mark.e2e

KINDS = {
    "PyTorchJob": ("pytorchReplicaSpecs", "Worker", "pytorch"),
    "TFJob": ("tfReplicaSpecs", "Worker", "tensorflow"),
    "MPIJob": ("mpiReplicaSpecs", "Worker", "mpi"),
    "JAXJob": ("jaxReplicaSpecs", "Worker", "jax"),
    "PaddleJob": ("paddleReplicaSpecs", "Worker", "paddle"),
    "XGBoostJob": ("xgbReplicaSpecs", "Worker", "xgboost"),
}
"""Kind -> where its replicas are, a role, and what their container must be called."""


def job_of(kind: str, *, batch_size: int, is_pinned: bool) -> dict[str, Any]:
    """Return a job of *kind*: a first replica that coordinates, and two workers on a card each."""
    job = resnet50_pytorchjob(NAMESPACE, batch_size=batch_size, card=T4)
    replicas, role, container = KINDS[kind]
    template = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["spec"]["containers"][0]["name"] = container
    unscheduled(template, is_pinned=is_pinned)
    roles = {role: {"replicas": 2, "template": template}}
    first = {"MPIJob": "Launcher", "XGBoostJob": "Master"}.get(kind)
    if first is not None:
        alone = copy.deepcopy(template)
        if kind == "MPIJob":
            del alone["spec"]["containers"][0]["resources"]
        roles[first] = {"replicas": 1, "template": alone}
    job |= {"kind": kind, "spec": {replicas: roles}}
    return job


@pytest.mark.parametrize("kind", ["PyTorchJob", "TFJob", "MPIJob", "JAXJob"])
def test_what_fits_nowhere_is_denied_once(api: ApiServer, webhook: Webhook, kind: str) -> None:
    """Each kind with its real schema; nothing of it is left."""
    job = job_of(kind, batch_size=LARGE, is_pinned=True)
    before = denials(webhook)

    answer = api.create(job)

    assert answer.status == 403, answer.body
    assert T4.product in answer.message
    assert denials(webhook) == before + 1
    assert api.get(job).status == 404


@pytest.mark.parametrize("kind", ["PaddleJob", "XGBoostJob"])
def test_what_is_not_modelled_is_let_through(api: ApiServer, kind: str) -> None:
    """With a warning, whatever its annotation says."""
    answer = api.create(job_of(kind, batch_size=LARGE, is_pinned=True), dry_run=True)

    assert answer.status == 201, answer.message
    assert answer.warnings


@pytest.mark.parametrize("kind", ["PyTorchJob", "TFJob"])
def test_running_one_may_be_applied_again(
    api: ApiServer, core: client.CoreV1Api, webhook: Webhook, kind: str
) -> None:
    """Its pods have our terms; the same manifest, sent again, changes nothing."""
    job = job_of(kind, batch_size=SMALL, is_pinned=False)
    before = denials(webhook)
    answer = api.apply(job)
    assert answer.status == 201, answer.message
    replicas, role, _ = KINDS[kind]
    selector = f"training.kubeflow.org/job-name={job['metadata']['name']}"
    wanted = answer.body["spec"][replicas][role]["template"]["spec"]["affinity"]["nodeAffinity"]
    pods = pods_of(core, selector, number=2)
    assert all(affinity_of(pod) == wanted for pod in pods)
    for pod in pods:
        played(core, pod)
    poll_until(lambda: "Running" in conditions(api, job), what=f"a running {kind}")

    labelled = copy.deepcopy(job)
    labelled["spec"][replicas][role]["template"].setdefault("metadata", {})["labels"] = {"a": "b"}
    again, changed = api.apply(job), api.apply(labelled)

    assert again.status == 200, again.message
    assert again.body["metadata"]["generation"] == answer.body["metadata"]["generation"]
    assert changed.status == 200, changed.message
    after = changed.body["spec"][replicas][role]["template"]["spec"]["affinity"]["nodeAffinity"]
    assert after == wanted
    assert denials(webhook) == before


def test_pods_of_its_controller_are_not_denied(api: ApiServer, core: client.CoreV1Api) -> None:
    """A job that we never saw gets its pods, although none of them fits."""
    job = job_of("PyTorchJob", batch_size=LARGE, is_pinned=True)
    job["metadata"]["labels"] = IGNORED

    answer = api.create(job)

    assert answer.status == 201, answer.message
    pods_of(core, f"training.kubeflow.org/job-name={job['metadata']['name']}", number=2)


def test_suspended_one_is_resumed(api: ApiServer, core: client.CoreV1Api) -> None:
    """Steered while it waits; the update that resumes it is let through."""
    job = job_of("PyTorchJob", batch_size=SMALL, is_pinned=False)
    job["spec"]["runPolicy"] = {"suspend": True}
    assert api.create(job).status == 201

    answer = api.patch(job, {"spec": {"runPolicy": {"suspend": False}}})

    assert answer.status == 200, answer.message
    selector = f"training.kubeflow.org/job-name={job['metadata']['name']}"
    assert all(affinity_of(pod) for pod in pods_of(core, selector, number=2))


def conditions(api: ApiServer, job: dict[str, Any]) -> list[str]:
    """Return what is true of *job* by its controller."""
    found = api.get(job).body.get("status", {}).get("conditions") or ()
    return [each["type"] for each in found if each["status"] == "True"]
