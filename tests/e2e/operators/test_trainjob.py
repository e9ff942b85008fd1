"""A TrainJob meets Vramgate, the real trainer with its webhooks, and the real JobSet."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from tests.e2e.nodes import T4
from tests.e2e.operators.made import (
    IGNORED,
    LARGE,
    affinity_of,
    denials,
    pods_of,
)
from tests.e2e.operators.trainjobs import trainjob
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook

pytestmark = pytest.mark.e2e


def test_what_fits_nowhere_is_denied_once(api: ApiServer, webhook: Webhook) -> None:
    """It is read with its runtime, and refused before there is a JobSet."""
    job = trainjob("large", batch_size=LARGE, product=T4.product)
    before = denials(webhook)

    answer = api.create(job)

    assert answer.status == 403, answer.body
    assert T4.product in answer.message
    assert denials(webhook) == before + 1
    assert jobset_of(api, job) == {}


def test_its_jobset_is_steered(api: ApiServer, core: client.CoreV1Api, webhook: Webhook) -> None:
    """A TrainJob has no place for terms: the JobSet that is made of it gets them, and the pods."""
    job = trainjob("steered", batch_size=LARGE)
    before = denials(webhook)

    answer = api.create(job)

    assert answer.status == 201, answer.message
    (pod,) = pods_of(core, "jobset.sigs.k8s.io/jobset-name=steered", number=1)
    (made,) = jobset_of(api, job)["replicatedJobs"]
    wanted = made["template"]["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    assert affinity_of(pod) == wanted
    assert denials(webhook) == before


def test_jobset_of_its_controller_is_not_denied_again(
    api: ApiServer, core: client.CoreV1Api
) -> None:
    """A TrainJob that we never saw gets its JobSet and its pod, although it does not fit."""
    job = trainjob("unseen", batch_size=LARGE, product=T4.product)
    job["metadata"]["labels"] = IGNORED

    answer = api.create(job)

    assert answer.status == 201, answer.message
    pods_of(core, "jobset.sigs.k8s.io/jobset-name=unseen", number=1)


def jobset_of(api: ApiServer, job: dict[str, Any]) -> dict[str, Any]:
    """Return what the JobSet of *job* asks for, empty if there is none."""
    named = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    return dict(api.get({**named, "metadata": job["metadata"]}).body.get("spec", {}))
