"""Queues of the real Kueue that ask our AdmissionCheck, and what is in them.

    flavors by card, a queue a test -> Workloads as Kueue has them

The flavors bear the product alone: Kueue cannot compare them with the memory that the webhook asks
for, and gives every job the first one. So it is the check that has to find the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client

from tests.e2e.conftest import has_service_account
from tests.e2e.nodes import A100, T4
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.workloads import resnet50_job

API = "kueue.x-k8s.io/v1beta2"
LABEL = "kueue.x-k8s.io/queue-name"
CHECK = "gpu-memory"
EXAMPLE = Path(__file__).parents[3] / "deploy" / "kueue" / "gpu-memory.yaml"
PRODUCT = "nvidia.com/gpu.product"
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
GPUS = {"node-t4": 6, "node-a100": 4}

_numbers = itertools.count(1)


def example() -> list[dict[str, Any]]:
    """Return what an operator applies, as it is shipped: the AdmissionCheck first."""
    return list(yaml.safe_load_all(EXAMPLE.read_bytes()))


def check() -> dict[str, Any]:
    """Return the AdmissionCheck of the example."""
    return example()[0]


def flavors() -> list[dict[str, Any]]:
    """Return a flavor a card, the smaller card first."""
    return [
        {
            "apiVersion": API,
            "kind": "ResourceFlavor",
            "metadata": {"name": card.name},
            "spec": {"nodeLabels": {PRODUCT: card.product}},
        }
        for card in (T4, A100)
    ]


@dataclass(slots=True)
class Team:
    """A namespace with a queue of its own."""

    api: ApiServer
    core: client.CoreV1Api
    name: str = field(default_factory=lambda: f"queued-{next(_numbers)}")
    made: list[dict[str, Any]] = field(default_factory=list)
    others: set[tuple[str, str]] = field(default_factory=set)
    """Versions and kinds of what was submitted beside Jobs."""

    def open(self, *, mode: str = "enforce", cards: tuple[str, ...] = tuple(GPUS)) -> None:
        """Make the namespace; jobs wait until there is a `queue`."""
        metadata = {"name": self.name, "labels": {"vramgate.dev/mode": mode}}
        self._make({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        poll_until(partial(has_service_account, self.core, self.name), what="a service account")
        quotas = [
            {
                "name": card,
                "resources": [
                    {"name": each, "nominalQuota": GPUS[card] if "gpu" in each else "1Ti"}
                    for each in RESOURCES
                ],
            }
            for card in cards
        ]
        spec = {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": list(RESOURCES), "flavors": quotas}],
            "admissionChecksStrategy": {"admissionChecks": [{"name": CHECK}]},
        }
        metadata = {"name": self.name}
        self._make({"apiVersion": API, "kind": "ClusterQueue", "metadata": metadata, "spec": spec})

    def enforce(self) -> None:
        """Have the mode changed: what is there by now was only warned about."""
        labels = {"vramgate.dev/mode": "enforce"}
        answer = self.api.patch(self.made[0], {"metadata": {"labels": labels}})
        assert answer.status == 200, answer.message

    def queue(self) -> None:
        """Let the jobs go to the queue."""
        metadata = {"namespace": self.name, "name": "queue"}
        spec = {"clusterQueue": self.name}
        self._make({"apiVersion": API, "kind": "LocalQueue", "metadata": metadata, "spec": spec})

    def job(self, *, batch_size: int, pinned: bool = False) -> dict[str, Any]:
        """Submit a Job to the queue that may go to every card, or to the larger alone."""
        document = resnet50_job(self.name, batch_size=batch_size, card=A100)
        if not pinned:
            del document["spec"]["template"]["spec"]["nodeSelector"]
        return self.submit(document)

    def submit(self, document: dict[str, Any]) -> dict[str, Any]:
        """Submit *document*, which waits in the queue then."""
        document["metadata"].setdefault("labels", {})[LABEL] = "queue"
        if document["kind"] == "Job":
            document["spec"]["backoffLimit"] = 6
        else:
            self.others.add((document["apiVersion"], document["kind"]))
        answer = self.api.create(document)
        assert answer.status == 201, answer.message
        return dict(answer.body)

    def workload(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return the Workload of *job*; empty while there is none."""
        uid = job["metadata"]["uid"]
        for each in self._list(f"/apis/{API}/namespaces/{self.name}/workloads"):
            owners = each["metadata"].get("ownerReferences") or ()
            if any(owner["uid"] == uid for owner in owners):
                return each
        return {}

    def flavor(self, job: Mapping[str, Any]) -> str | None:
        """Return the flavor of the cards that *job*, of one pod set, was admitted to."""
        workload = self.workload(job)
        if not has(workload, "Admitted"):
            return None
        (assigned,) = workload["status"]["admission"]["podSetAssignments"]
        return str(assigned["flavors"].get("nvidia.com/gpu"))

    def answer(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state of our check on the Workload of *job*."""
        checks = self.workload(job).get("status", {}).get("admissionChecks") or [{}]
        return dict(checks[0])

    def events(self, job: Mapping[str, Any], reason: str = "") -> list[str]:
        """Return the messages of our Events about *job*."""
        found = self._list(f"/api/v1/namespaces/{self.name}/events")
        return [
            each["message"]
            for each in found
            if each["involvedObject"].get("uid") == job["metadata"]["uid"]
            and each["source"].get("component") == "vramgate-controller"
            and reason in (each["reason"], "")
        ]

    def reserved(self) -> dict[str, int]:
        """Return how many GPUs of each flavor the queue has given away."""
        queue = {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": self.name}}
        status = self.api.get(queue).body.get("status", {})
        return {
            flavor["name"]: int(resource["total"])
            for flavor in status.get("flavorsReservation") or ()
            for resource in flavor["resources"]
            if resource["name"] == "nvidia.com/gpu"
        }

    def now(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return *job* as the API server has it."""
        return dict(self.api.get(job).body)

    def close(self) -> None:
        """Take everything away, the pods first: nobody ends them."""
        self._clear("batch/v1", "Job")
        for version, kind in self.others:
            self._clear(version, kind)
        poll_until(self._is_empty, what="the end of all pods")
        for document in reversed(self.made):
            self.api.delete(document)

    def _is_empty(self) -> bool:
        self.core.delete_collection_namespaced_pod(self.name, grace_period_seconds=0)
        return not self.core.list_namespaced_pod(self.name).items

    def _clear(self, version: str, kind: str) -> None:
        plural = f"{kind.lower()}s"
        for each in self._list(f"/apis/{version}/namespaces/{self.name}/{plural}"):
            self.api.delete({**each, "kind": kind, "apiVersion": version})

    def _list(self, path: str) -> list[dict[str, Any]]:
        return list(self.api.read(path).body.get("items") or ())

    def _make(self, document: dict[str, Any]) -> None:
        answer = self.api.create(document)
        assert answer.status == 201, answer.message
        self.made.append(document)


def has(workload: Mapping[str, Any], condition: str) -> bool:
    """Return whether *workload* has a condition of that type that is true."""
    return any(
        each["type"] == condition and each["status"] == "True"
        for each in workload.get("status", {}).get("conditions") or ()
    )


def settled(what: str, is_settled: Callable[[], bool], *, seconds: float = 120.0) -> None:
    """Wait until *is_settled*: the first estimate waits for a worker that imports PyTorch."""
    poll_until(is_settled, what=what, seconds=seconds)
