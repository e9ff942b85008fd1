"""A queue of Kueue's in the cluster in memory: flavors by card, a job, its Workload.

    flavor -> Workload with quota and our check Pending; duty -> what it says and writes

Kueue is played by hand: `assign` makes a Workload as it does, of the job as it is then.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from admission.controller.duties.queue import Queue
from admission.values import Json
from tests.admission.controller.objects import CREATED, JOB, job
from tests.admission.controller.scene import Scene, owner
from tests.builders import GPU

API = "kueue.x-k8s.io/v1beta2"
ROOT = f"/apis/{API}"
CHECK = f"{ROOT}/admissionchecks/gpu-memory"
CLUSTER_QUEUE = f"{ROOT}/clusterqueues/team-queue"
WORKLOAD = f"{ROOT}/namespaces/team/workloads/job-train"
PRODUCT = f"{GPU}.product"
T4, A10 = {PRODUCT: "Tesla-T4"}, {PRODUCT: "NVIDIA-A10"}


class QueueScene(Scene):
    """The duty of the queue, with flavors `t4` and `a10` unless told otherwise."""

    def __init__(
        self, *, flavors: Mapping[str, Mapping[str, str]] | None = None, **settings: Any
    ) -> None:
        super().__init__(**settings)
        self.flavors = {"t4": T4, "a10": A10} if flavors is None else flavors
        self.restart()
        spec: dict[str, Any] = {"controllerName": "vramgate.dev/gpu-memory"}
        self.put(CHECK, "AdmissionCheck", spec)
        for name, labels in self.flavors.items():
            self.put(f"{ROOT}/resourceflavors/{name}", "ResourceFlavor", {"nodeLabels": labels})
        quotas = [
            {"name": name, "resources": [{"name": GPU, "nominalQuota": "8"}]}
            for name in self.flavors
        ]
        group = {"coveredResources": [GPU], "flavors": quotas}
        self.put(CLUSTER_QUEUE, "ClusterQueue", {"resourceGroups": [group]})

    def restart(self) -> None:
        """Have a new controller, that knows nothing but what it reads."""
        self.begin(Queue(self.parts))

    def put(self, path: str, kind: str, spec: Mapping[str, Any]) -> None:
        """Store an object of Kueue's."""
        metadata = {"name": path.rpartition("/")[2], "generation": 1}
        document = {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": dict(spec)}
        self.cluster.put(path, document)

    def queue(self, batch_size: int | None, flavor: str, **more: Any) -> None:
        """Have a suspended Job in the queue that was assigned *flavor*."""
        made = job(batch_size, suspend=True, **more)
        made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "queue"}
        self.cluster.put(JOB, made)
        self.assign(flavor)

    def assign(self, flavor: str, *, state: str = "Pending", number: int = 1) -> None:
        """Have the *number*th Workload of the Job as it is now, with *flavor*."""
        obj = self.cluster.objects[JOB]
        reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": CREATED}
        admitted = {"type": "Admitted", "status": "True", "lastTransitionTime": CREATED}
        assigned = {"name": "main", "flavors": {GPU: flavor}, "count": 1}
        self.cluster.put(
            WORKLOAD,
            {
                "apiVersion": API,
                "kind": "Workload",
                "metadata": {
                    "name": "job-train",
                    "namespace": "team",
                    "uid": f"workload-{number}",
                    "ownerReferences": owner("Job", "batch/v1", JOB, "train"),
                },
                "spec": {
                    "podSets": [
                        {"name": "main", "count": 1, "template": deepcopy(obj["spec"]["template"])}
                    ]
                },
                "status": {
                    "admission": {
                        "clusterQueue": "team-queue",
                        "podSetAssignments": [assigned],
                    },
                    "conditions": [reserved, *([admitted] if state == "Ready" else [])],
                    "admissionChecks": [
                        {"name": "other", "state": "Pending", "message": ""},
                        {"name": "gpu-memory", "state": state, "message": ""},
                    ],
                },
            },
        )

    @property
    def answer(self) -> tuple[str, str]:
        """Return state and message of our check."""
        (found,) = (
            each
            for each in self.cluster.objects[WORKLOAD]["status"]["admissionChecks"]
            if each["name"] == "gpu-memory"
        )
        return found["state"], found["message"]

    @property
    def check(self) -> dict[str, Any]:
        """Return our check as it stands in the Workload."""
        found: dict[str, Any] = self.cluster.objects[WORKLOAD]["status"]["admissionChecks"][1]
        return found

    @property
    def job(self) -> dict[str, Any]:
        """Return the Job as it is."""
        return self.cluster.objects[JOB]

    @property
    def required(self) -> list[dict[str, Any]]:
        """Return the expressions that the Job's pods require of their nodes."""
        spec = self.job["spec"]["template"]["spec"]
        nodes = spec.get("affinity", {}).get("nodeAffinity", {})
        required = nodes.get("requiredDuringSchedulingIgnoredDuringExecution", {})
        return [
            each
            for term in required.get("nodeSelectorTerms", ())
            for each in term["matchExpressions"]
        ]

    def _take(self, path: str, obj: Json | None) -> None:
        if not path.startswith(ROOT):
            super()._take(path, obj)
            return
        assert isinstance(self._duty, Queue)
        kinds = {"workloads": "Workload", "admissionchecks": "AdmissionCheck"}
        kinds |= {"clusterqueues": "ClusterQueue", "resourceflavors": "ResourceFlavor"}
        *_, plural, name = path.split("/")
        key = f"team/{name}" if plural == "workloads" else name
        for follow in self._duty.follows:
            if follow.kind == kinds[plural]:
                follow.take({key: None if obj is None else follow.cut(obj, API)}, self._add)
