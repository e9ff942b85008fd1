"""Workloads that controllers of other projects make pods of, and what they made.

batch size -> objects of their kinds that train a ResNet-50; an object -> its pods
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubernetes import client

from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook

Document = dict[str, Any]

NAMESPACE = "operators"
SMALL, LARGE = 64, 256
"""Batch sizes: for 16 GiB; too large for that and well within 40 GiB."""

IGNORED = {"vramgate.dev/webhook": "ignore"}
"""Labels of what is not sent to us: it is there as if from before we came."""


def pods_of(core: client.CoreV1Api, selector: str, *, number: int) -> Sequence[client.V1Pod]:
    """Return the pods with labels that *selector* selects, once there are *number*."""
    found: list[client.V1Pod] = []

    def are_there() -> bool:
        found[:] = core.list_namespaced_pod(NAMESPACE, label_selector=selector).items
        return len(found) >= number

    poll_until(are_there, what=f"{number} pods of {selector}")
    return found


def affinity_of(pod: client.V1Pod) -> Any:
    """Return the node affinity of *pod* as JSON; None if it has none."""
    if pod.spec.affinity is None:
        return None
    return client.ApiClient().sanitize_for_serialization(pod.spec.affinity.node_affinity)


def unscheduled(template: Document, *, is_pinned: bool = False) -> None:
    """Let the pods of *template* go to every card, but have nobody put them there.

    Cards are for the tests that look where pods land.
    """
    template["spec"]["schedulerName"] = "nobody"
    if not is_pinned:
        template["spec"].pop("nodeSelector", None)


def denials(webhook: Webhook) -> int:
    """Return how many reviews have been denied."""
    return webhook.num_reviews(action="deny")


def jobs(api: ApiServer, selector: str) -> list[Document]:
    """Return the Jobs with labels that *selector* selects."""
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
    found: list[Document] = api.read(path, labelSelector=selector).body["items"]
    return found


def played(core: client.CoreV1Api, pod: client.V1Pod) -> None:
    """Say of *pod* what its kubelet would: it runs."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    core.patch_namespaced_pod_status(pod.metadata.name, NAMESPACE, {"status": status})


def node_of(core: client.CoreV1Api, pod: client.V1Pod) -> str | None:
    """Return the node that *pod* was put on by now."""
    name: str | None = core.read_namespaced_pod(pod.metadata.name, NAMESPACE).spec.node_name
    return name
