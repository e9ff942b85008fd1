"""RayJobs and RayClusters meet Vramgate and the real KubeRay."""

from __future__ import annotations

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
    pods_of,
)
from tests.e2e.operators.rayjobs import API, cluster_of, cluster_spec, clusters_of, rayjob
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook

pytestmark = pytest.mark.e2e


def test_rayjob_that_fits_nowhere_is_denied_once(api: ApiServer, webhook: Webhook) -> None:
    """By what its worker group says; there is no RayCluster."""
    job = rayjob("large", batch_size=LARGE, product=T4.product)
    before = denials(webhook)

    answer = api.create(job)

    assert answer.status == 403, answer.body
    assert T4.product in answer.message
    assert denials(webhook) == before + 1
    assert not clusters_of(api, "large")


def test_workers_of_a_rayjob_are_steered(
    api: ApiServer, core: client.CoreV1Api, webhook: Webhook
) -> None:
    """Its templates cannot change once it runs: the pods that KubeRay makes get the terms."""
    before = denials(webhook)

    answer = api.create(rayjob("steered", batch_size=SMALL))

    assert answer.status == 201, answer.message
    (worker,) = pods_of(
        core, f"ray.io/cluster={cluster_of(api, 'steered')},ray.io/group=gpu", number=1
    )
    assert affinity_of(worker)
    assert denials(webhook) == before


def test_workers_of_a_rayjob_are_not_denied(api: ApiServer, core: client.CoreV1Api) -> None:
    """KubeRay would try again without end."""
    job = rayjob("unseen", batch_size=LARGE, product=T4.product)
    job["metadata"]["labels"] = IGNORED

    answer = api.create(job)

    assert answer.status == 201, answer.message
    (worker,) = pods_of(
        core, f"ray.io/cluster={cluster_of(api, 'unseen')},ray.io/group=gpu", number=1
    )
    assert affinity_of(worker) is None


def test_raycluster_without_a_job_is_let_be(
    api: ApiServer, core: client.CoreV1Api, webhook: Webhook
) -> None:
    """Nothing is known to run on it: neither it nor its pods are warned of, denied or steered."""
    metadata = {"namespace": NAMESPACE, "name": "idle"}
    cluster = {"apiVersion": API, "kind": "RayCluster", "metadata": metadata}
    before = webhook.num_reviews(kind="Pod", verdict="skipped")

    answer = api.create({**cluster, "spec": cluster_spec()})

    assert (answer.status, answer.warnings) == (201, ())
    (worker,) = pods_of(core, "ray.io/cluster=idle,ray.io/group=gpu", number=1)
    assert affinity_of(worker) is None
    assert webhook.num_reviews(kind="Pod", verdict="skipped") == before + 1
