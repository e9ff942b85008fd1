"""Jobs that wait in a queue meet Vramgate and the real Kueue, before and after each other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client

from tests.e2e.cluster import ControlPlane
from tests.e2e.jobset import resnet50_jobset
from tests.e2e.nodes import A100, T4, GpuNode
from tests.e2e.operators.made import (
    LARGE,
    NAMESPACE,
    SMALL,
    affinity_of,
    denials,
    node_of,
    pods_of,
    unscheduled,
)
from tests.e2e.operators.rayjobs import cluster_of, rayjob
from tests.e2e.operators.trainjobs import trainjob
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook import configurations
from tests.e2e.webhook_process import Webhook
from tests.e2e.workloads import resnet50_job, resnet50_pytorchjob

pytestmark = pytest.mark.e2e

API = "kueue.x-k8s.io/v1beta2"
QUEUE = "queue"
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")

_numbers = itertools.count(1)


@pytest.fixture(scope="module", autouse=True)
def _queue(api: ApiServer) -> None:
    """Have a queue with a flavor a card: exact labels, the smaller card first."""
    flavors = []
    for card in (T4, A100):
        labels = {
            "nvidia.com/gpu.product": card.product,
            "nvidia.com/gpu.memory": str(card.memory_mib),
        }
        create(api, "ResourceFlavor", card.name, {"nodeLabels": labels})
        quota = [{"name": each, "nominalQuota": "1Ti"} for each in RESOURCES]
        flavors.append({"name": card.name, "resources": quota})
    groups = [{"coveredResources": list(RESOURCES), "flavors": flavors}]
    create(
        api, "ClusterQueue", "cluster-queue", {"namespaceSelector": {}, "resourceGroups": groups}
    )
    create(api, "LocalQueue", QUEUE, {"clusterQueue": "cluster-queue"})


@pytest.fixture(params=["after Kueue", "before Kueue"], scope="module")
def _order(
    request: pytest.FixtureRequest, plane: ControlPlane, api: ApiServer, webhook: Webhook
) -> Iterator[None]:
    """Have our mutating webhooks called after or before Kueue's: by the registrations' names."""
    if request.param == "after Kueue":
        yield
        return
    (ours,) = (
        each
        for each in configurations(webhook.url, ca_bundle=plane.authority.pem)
        if each["kind"].startswith("Mutating")
    )
    earlier = {**ours, "metadata": {"name": "earlier"}}
    assert api.create(earlier).status == 201
    api.delete(ours)  # no sooner: there is always one that is called
    yield
    assert api.create(ours).status == 201
    api.delete(earlier)


@pytest.mark.usefixtures("_order")
@pytest.mark.parametrize(("batch_size", "card"), [(SMALL, T4), (LARGE, A100)])
def test_queued_job_gets_the_flavor_that_holds_it(
    api: ApiServer, core: client.CoreV1Api, webhook: Webhook, batch_size: int, card: GpuNode
) -> None:
    """Suspended by Kueue and steered by us at CREATE; resumed by Kueue; put where it fits."""
    job = queued(batch_size=batch_size)
    before = denials(webhook)

    answer = api.create(job)

    assert answer.status == 201, answer.message
    assert answer.body["spec"]["suspend"] is True  # by Kueue's webhook
    wanted = answer.body["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (pod,) = pods_of(core, f"batch.kubernetes.io/job-name={job['metadata']['name']}", number=1)
    assert pod.spec.node_selector["nvidia.com/gpu.product"] == card.product  # by Kueue's flavor
    assert affinity_of(pod) == wanted
    poll_until(lambda: node_of(core, pod) == card.name, what=f"a pod on {card.name}")
    assert denials(webhook) == before


@pytest.mark.usefixtures("_order")
@pytest.mark.parametrize("kind", ["JobSet", "PyTorchJob", "RayJob"])
def test_other_kinds_get_it_too(
    api: ApiServer, core: client.CoreV1Api, webhook: Webhook, kind: str
) -> None:
    """The flavor is chosen by our terms, since their templates stand in the object."""
    document, selector = queued_of(kind, api)
    before = denials(webhook)

    answer = api.create(document)

    assert answer.status == 201, answer.message
    (pod, *_) = pods_of(core, selector(), number=1)
    assert pod.spec.node_selector["nvidia.com/gpu.product"] == A100.product
    assert denials(webhook) == before


@pytest.mark.usefixtures("_order")
def test_queued_trainjob_is_let_go_where_its_queue_sends_it(
    api: ApiServer, core: client.CoreV1Api, webhook: Webhook
) -> None:
    """Kueue sees no terms in it and takes the first flavor: refusing that would have no end."""
    document, selector = queued_of("TrainJob", api)
    before = denials(webhook)

    answer = api.create(document)

    assert answer.status == 201, answer.message
    assert any("smaller" in each or T4.product in each for each in answer.warnings)
    (pod,) = pods_of(core, selector(), number=1)
    assert pod.spec.node_selector["nvidia.com/gpu.product"] == T4.product
    assert denials(webhook) == before


@pytest.mark.usefixtures("_order")
def test_queued_job_that_fits_nowhere_is_denied(api: ApiServer) -> None:
    """At once, rather than when its turn comes: no Workload waits for it."""
    job = queued(batch_size=LARGE)
    job["spec"]["template"]["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": T4.product}

    answer = api.create(job)

    assert answer.status == 403
    assert T4.product in answer.message


def queued(*, batch_size: int) -> dict[str, Any]:
    """Return a Job for the queue that may go to every card, written without `suspend`."""
    job = resnet50_job(NAMESPACE, batch_size=batch_size, card=T4)
    del job["spec"]["template"]["spec"]["nodeSelector"]
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": QUEUE}
    return job


def queued_of(kind: str, api: ApiServer) -> tuple[dict[str, Any], Callable[[], str]]:
    """Return a job of *kind* for the queue that only the larger card holds; what its pods bear."""
    match kind:
        case "JobSet":
            document = resnet50_jobset(NAMESPACE, batch_size=LARGE, card=T4)
            unscheduled(document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"])
            label = "jobset.sigs.k8s.io/jobset-name"
        case "PyTorchJob":
            document = resnet50_pytorchjob(NAMESPACE, batch_size=LARGE, card=T4)
            unscheduled(document["spec"]["pytorchReplicaSpecs"]["Master"]["template"])
            label = "training.kubeflow.org/job-name"
        case "TrainJob":
            document = trainjob(f"queued-{next(_numbers)}", batch_size=LARGE)
            label = "jobset.sigs.k8s.io/jobset-name"
        case _:
            document = rayjob(f"queued-{next(_numbers)}", batch_size=LARGE)
            document["spec"]["shutdownAfterJobFinishes"] = True  # Kueue asks for it
            name = document["metadata"]["name"]
            document["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": QUEUE}
            return document, lambda: f"ray.io/cluster={cluster_of(api, name)},ray.io/group=gpu"
    name = document["metadata"]["name"]
    document["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": QUEUE}
    return document, lambda: f"{label}={name}"


def create(api: ApiServer, kind: str, name: str, spec: dict[str, Any]) -> None:
    """Create an object of Kueue's."""
    metadata = {"namespace": NAMESPACE, "name": name}
    if kind != "LocalQueue":
        del metadata["namespace"]
    answer = api.create({"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec})
    assert answer.status == 201, answer.message
