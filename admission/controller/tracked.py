"""Workloads as the controller keeps them: what was said of them, and whether they are held.

    object of any training kind -> what is kept -> Tracked

Kinds whose CRD is not installed are looked for again from time to time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from admission.capacity.eligibility import QUEUE_LABEL
from admission.cluster import Resource
from admission.controller.refs import Ref, owner_of
from admission.steer.notes import PREFIX, VERDICT
from admission.steer.permission import is_suspended
from admission.values import Json
from admission.workloads.fields import number, part, parts, word, words_of

PAGE = 100

TRACKED: Mapping[str, tuple[str, ...]] = {
    "batch/v1": ("Job", "CronJob"),
    "jobset.x-k8s.io/v1alpha2": ("JobSet",),
    "kubeflow.org/v1": ("PyTorchJob", "TFJob", "JAXJob", "XGBoostJob", "PaddleJob"),
    "kubeflow.org/v2beta1": ("MPIJob",),
    "trainer.kubeflow.org/v1alpha1": ("TrainJob",),
    "batch.volcano.sh/v1alpha1": ("Job",),
    "ray.io/v1": ("RayJob",),
    "leaderworkerset.x-k8s.io/v1": ("LeaderWorkerSet",),
    "argoproj.io/v1alpha1": ("Workflow",),
    "sagemaker.amazonaws.com/v1": ("HyperPodPyTorchJob",),
}
"""Group and version -> kinds: what people submit. Pods are followed apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """One workload."""

    ref: Ref
    owner: Ref | None
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Those of ours."""
    queue: str | None = None
    """The Kueue queue it is in: then the queue moves it, not we."""
    suspended: bool = False
    started: bool = False
    ended: bool = False
    created: str = ""
    generation: int = 0
    """Of its spec, where the API server counts."""

    @property
    def key(self) -> str:
        """Return what tells it from every other: kind, group, namespace, name."""
        return key_of(self.ref)

    @property
    def verdict(self) -> str | None:
        """Return the verdict it was admitted with, as written on it."""
        return self.annotations.get(VERDICT)


def key_of(ref: Ref) -> str:
    """Return `KIND.GROUP/NAMESPACE/NAME`."""
    return f"{ref.kind}.{ref.group}/{ref.namespace}/{ref.name}"


def tracked_resource(api_version: str, kind: str, path: str) -> Resource:
    """Return how to follow every object of a kind that the API server has at *path*."""

    def cut(obj: Json) -> Json:
        return {"tracked": tracked_of(obj, api_version=api_version, kind=kind)}

    return Resource(path=path, cut=cut, page=PAGE, in_namespaces=True)


def tracked_of(obj: Json, *, api_version: str, kind: str) -> Tracked:
    """Return what is kept of *obj*; items of a list do not say their kind."""
    meta, status = (part(part(obj).get(key)) for key in ("metadata", "status"))
    namespace = word(meta.get("namespace"))
    annotations = words_of(meta.get("annotations"))
    return Tracked(
        ref=Ref(
            api_version=api_version,
            kind=kind,
            namespace=namespace,
            name=word(meta.get("name")),
            uid=word(meta.get("uid")),
        ),
        owner=owner_of(meta, namespace=namespace),
        annotations={key: text for key, text in annotations.items() if key.startswith(PREFIX)},
        queue=words_of(meta.get("labels")).get(QUEUE_LABEL),
        suspended=is_suspended(part(obj)),
        started=bool(status.get("startTime") or status.get("active")),
        ended=_has_ended(status),
        created=word(meta.get("creationTimestamp")),
        generation=number(meta.get("generation")),
    )


def _has_ended(status: Json) -> bool:
    """Return whether a workload is over: each kind says so by a condition of one of these types."""
    if status.get("completionTime"):
        return True
    ends = ("Complete", "Failed", "Completed", "Succeeded", "Finished")
    return any(
        each.get("type") in ends and each.get("status") == "True"
        for each in parts(status.get("conditions"))
    )
