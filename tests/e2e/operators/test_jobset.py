"""A JobSet meets Vramgate, the real JobSet controller and its webhooks."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from tests.e2e.jobset import resnet50_jobset
from tests.e2e.nodes import T4
from tests.e2e.operators.made import (
    IGNORED,
    LARGE,
    NAMESPACE,
    SMALL,
    affinity_of,
    denials,
    jobs,
    pods_of,
    unscheduled,
)
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook

pytestmark = pytest.mark.e2e


def test_what_fits_nowhere_is_denied_once(api: ApiServer, webhook: Webhook) -> None:
    """The JobSet is refused with the reason, and no Job was ever asked for."""
    jobset = resnet50_jobset(NAMESPACE, batch_size=LARGE, card=T4)
    before = denials(webhook)

    answer = api.create(jobset)

    assert answer.status == 403
    assert T4.product in answer.message
    assert denials(webhook) == before + 1
    assert not jobs(api, f"jobset.sigs.k8s.io/jobset-name={jobset['metadata']['name']}")


def test_pods_of_what_fits_are_steered(
    api: ApiServer, core: client.CoreV1Api, webhook: Webhook
) -> None:
    """Its own defaults and our terms stand side by side; its Jobs and pods have the terms."""
    jobset = resnet50_jobset(NAMESPACE, batch_size=LARGE, card=T4)
    unscheduled(template_of(jobset))
    before = denials(webhook)

    answer = api.create(jobset)

    assert answer.status == 201, answer.message
    spec = answer.body["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert spec["completionMode"] == "Indexed"  # by JobSet's webhook
    selector = f"jobset.sigs.k8s.io/jobset-name={jobset['metadata']['name']}"
    for pod in pods_of(core, selector, number=2):
        assert affinity_of(pod) == spec["template"]["spec"]["affinity"]["nodeAffinity"]
    assert denials(webhook) == before


def test_jobs_of_its_controller_are_not_denied_again(
    api: ApiServer, core: client.CoreV1Api
) -> None:
    """A JobSet that we never saw gets its pods, although none of them fits."""
    jobset = resnet50_jobset(NAMESPACE, batch_size=LARGE, card=T4)
    jobset["metadata"]["labels"] = IGNORED
    unscheduled(template_of(jobset), is_pinned=True)

    answer = api.create(jobset)

    assert answer.status == 201, answer.message
    pods_of(core, f"jobset.sigs.k8s.io/jobset-name={jobset['metadata']['name']}", number=2)


def test_suspended_one_is_resumed(api: ApiServer, core: client.CoreV1Api) -> None:
    """Steered while it waits; resuming it changes nothing that JobSet guards."""
    jobset = resnet50_jobset(NAMESPACE, batch_size=SMALL, card=T4)
    unscheduled(template_of(jobset))
    jobset["spec"]["suspend"] = True
    assert api.create(jobset).status == 201

    answer = api.patch(jobset, {"spec": {"suspend": False}})

    assert answer.status == 200, answer.message
    selector = f"jobset.sigs.k8s.io/jobset-name={jobset['metadata']['name']}"
    assert all(affinity_of(pod) for pod in pods_of(core, selector, number=2))


def template_of(jobset: dict[str, Any]) -> dict[str, Any]:
    """Return the pod template of *jobset*."""
    template: dict[str, Any] = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    return template
