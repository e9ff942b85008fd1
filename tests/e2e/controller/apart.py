"""A cluster for the controller alone: no webhook judges or steers what its tests create.

    control plane, a T4 and an A100 -> Apart

Who needs a webhook there registers one for a namespace of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kubernetes import client

from tests.e2e.cluster import ControlPlane, control_plane
from tests.e2e.conftest import has_service_account, is_established
from tests.e2e.connection import connected
from tests.e2e.controller.process import NAMESPACE
from tests.e2e.controlplane.build import build
from tests.e2e.jobset import definition
from tests.e2e.nodes import A100, T4, create
from tests.e2e.operators.catalog import TRAINING
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer

WORKLOADS = (
    ("/apis/jobset.x-k8s.io/v1alpha2/jobsets", "jobset.x-k8s.io/v1alpha2", "JobSet"),
    ("/apis/kubeflow.org/v1/pytorchjobs", "kubeflow.org/v1", "PyTorchJob"),
    ("/apis/batch/v1/jobs", "batch/v1", "Job"),
)

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """The cluster and those who talk to it."""

    plane: ControlPlane
    api: ApiServer
    core: client.CoreV1Api

    def namespace(self, *, name: str = "", labels: Mapping[str, str] | None = None) -> str:
        """Return a namespace that nobody else has, once pods can be made in it."""
        name = name or f"team-{next(_numbers)}"
        metadata = {"name": name, "labels": dict(labels or {})}
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        poll_until(partial(has_service_account, self.core, name), what=f"accounts in {name}")
        return name

    def create(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create *document* and return it as it was stored."""
        answer = self.api.create(document)
        assert answer.status == 201, answer.message
        return answer.body

    def now(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the object that *document* names, as it is now."""
        answer = self.api.get(document)
        assert answer.status == 200, answer.message
        return dict(answer.body)

    def pods(self, job: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the pods of a Job."""
        metadata = job["metadata"]
        found = self.api.read(
            f"/api/v1/namespaces/{metadata['namespace']}/pods",
            labelSelector=f"batch.kubernetes.io/job-name={metadata['name']}",
        )
        return list(found.body["items"])

    def clear(self) -> None:
        """Delete every workload and pod: their cards are the next test's."""
        for path, api_version, kind in WORKLOADS:
            for each in self.api.read(path).body["items"]:
                self.api.delete({**each, "apiVersion": api_version, "kind": kind})
        poll_until(self._is_clear, what="all pods to be gone")

    def _is_clear(self) -> bool:
        found = self.api.read("/api/v1/pods").body["items"]
        for each in found:
            # No kubelet says that they have ended.
            self.api.delete({**each, "apiVersion": "v1", "kind": "Pod"}, grace_seconds=0)
        return not found

    def events(self, document: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return reason and message of our Events on an object, the first one first."""
        metadata = document["metadata"]
        found = self.api.read(f"/api/v1/namespaces/{metadata['namespace']}/events")
        ours = [
            each
            for each in found.body["items"]
            if each["reason"].startswith("Gpu")
            and each["involvedObject"]["name"] == metadata["name"]
            and each["involvedObject"]["kind"] == document["kind"]
        ]
        ours.sort(key=lambda each: int(each["metadata"]["resourceVersion"]))
        return [(each["reason"], each["message"]) for each in ours]

    def reasons(self, document: Mapping[str, Any]) -> list[str]:
        """Return why our Events on an object were sent."""
        return [reason for reason, _ in self.events(document)]


@contextmanager
def apart(directory: Path) -> Iterator[Apart]:
    """Run such a cluster in *directory*."""
    with (
        control_plane(build(), directory=directory) as plane,
        connected(plane.credentials) as core,
    ):
        api = ApiServer(plane.credentials)
        found = Apart(plane=plane, api=api, core=core)
        for node in (T4, A100):
            create(node, core)
        (training,) = TRAINING.definitions("PyTorchJob")
        for document in (definition(), training):
            found.create(document)
            poll_until(
                lambda document=document: is_established(api.get(document).body),  # type: ignore[misc]
                what=f"the kind {document['spec']['names']['kind']}",
            )
        found.namespace(name=NAMESPACE)
        try:
            yield found
        finally:
            api.close()


def job(
    namespace: str,
    spec: Mapping[str, str],
    *,
    pod: Mapping[str, Any],
    notes: Mapping[str, str] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return a Job whose pods say what they train by the annotations *spec*."""
    annotations = {**spec, **(notes or {})}
    template = {"metadata": {"annotations": annotations}, "spec": dict(pod)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "namespace": namespace,
            "name": f"train-{next(_numbers)}",
            "annotations": annotations,
        },
        "spec": {"backoffLimit": 0, "template": template, **fields},
    }
