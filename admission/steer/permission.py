"""What may be written into an object on this request.

    Workload, operation, what was stored -> Permission

Source: docs/contracts.md 4 and, of what each kind lets change when: kubernetes v1.36.3
`pkg/registry/batch/job/strategy.go`; kubernetes-sigs/jobset v0.12.0 `pkg/webhooks/
jobset_webhook.go`; volcano-sh/volcano ed72c7c8 `pkg/webhooks/admission/jobs/validate/admit_job.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from admission.capacity.eligibility import QUEUE_LABEL
from admission.codes import Operation
from admission.decision import is_observed
from admission.steer.gates import is_gated
from admission.steer.terms import recorded
from admission.values import Json, Workload
from admission.workloads.fields import entries

Name = tuple[str, str]
"""API group, kind."""


class Place(StrEnum):
    """By what the pods may be steered."""

    AFFINITY = "affinity"
    SELECTOR = "selector"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What may be patched."""

    place: Place = Place.NOWHERE
    annotations: bool = False
    """On the object and its pod templates."""
    containers: bool = False


NOTHING = Permission()
ALL = Permission(place=Place.AFFINITY, annotations=True, containers=True)
SCHEDULING = Permission(place=Place.AFFINITY, annotations=True)
"""Affinity and annotations of the pod template, never a container."""
SELECTOR = Permission(place=Place.SELECTOR, annotations=True)

REMADE = frozenset(
    ("kubeflow.org", kind)
    for kind in ("JAXJob", "MPIJob", "MXJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
)
"""Kinds whose pod templates may change after the start as well: a pod that is gone is made anew
from the template as it is then. Source: kubeflow/training-operator v1.9.3 `pkg/controller.v1/
common/pod.go` (`ReconcilePods`, `createNewPod`)."""
_ANY_TIME = frozenset(
    {("batch", "CronJob"), ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"), *REMADE}
)
"""Kinds whose pod templates may change in an update, before pods were made of them."""
_WHILE_SUSPENDED = {("batch", "Job"): SCHEDULING, ("jobset.x-k8s.io", "JobSet"): SELECTOR}

FIXED_OWNERS = frozenset(
    {
        ("argoproj.io", "Workflow"),
        ("batch.volcano.sh", "Job"),
        ("elastic.pytorch.org", "ElasticJob"),
        ("kaito.sh", "Workspace"),
        ("ray.io", "RayCluster"),
        ("ray.io", "RayJob"),
        ("sagemaker.amazonaws.com", "HyperPodPyTorchJob"),
        ("trainer.kubeflow.org", "TrainJob"),
    }
)
"""Controllers whose templates cannot change, or stand in another object: what they make is steered
as it is made. What others make was steered at its root."""

_POD = ("", "Pod")
_FLAT = ("kubeflow.org", "MPIJob", "spec.template")
"""One template for launcher and workers: a launcher without a GPU may go where no card is."""


def permission_of(
    workload: Workload,
    operation: Operation,
    *,
    stored: Json | None,
    relaxes: bool = False,
    is_learnt: bool = False,
) -> Permission:
    """Return what may be patched; *stored* is the object that an update replaces.

    With *relaxes* it is for a pod that waits and is then deleted: its template may be changed of
    the kinds whose controller makes a missing pod from the template as it is by then.
    What *is_learnt* of a death is more than whoever's template it was made from knew.
    """
    if is_observed(workload) or workload.skip is not None:
        return NOTHING
    if operation is Operation.CREATE and not workload.controlled:
        return ALL
    if operation is Operation.CREATE:
        # What came with our terms has them of its owner, who sees the whole job.
        is_left = _has_fixed_owner(workload.metadata) and not recorded(workload.metadata)
        return ALL if is_left or is_learnt else NOTHING
    if is_queued(workload.metadata):
        return NOTHING
    name = (workload.ref.api_version.rpartition("/")[0], workload.ref.kind)
    if relaxes and name in REMADE and not workload.controlled:
        return SCHEDULING
    if workload.started:
        return NOTHING
    if name == _POD and stored is not None and is_gated(stored):
        return SCHEDULING
    if workload.controlled:
        return NOTHING
    if name in _ANY_TIME:
        return ALL
    if name in _WHILE_SUSPENDED and stored is not None and is_suspended(stored):
        return _WHILE_SUSPENDED[name]
    return NOTHING


def is_suspended(obj: Json) -> bool:
    """Return whether *obj* is suspended: by `spec.suspend`, or as the training operator writes it.

    Kinds without such a field (a Volcano Job, a Workspace) never are.
    """
    spec = obj.get("spec")
    if not isinstance(spec, Mapping):
        return False
    policy = spec.get("runPolicy")
    return spec.get("suspend") is True or (
        isinstance(policy, Mapping) and policy.get("suspend") is True
    )


def is_queued(metadata: Json) -> bool:
    """Return whether Kueue has it: once it is there, Kueue and its flavour decide where it goes."""
    labels = metadata.get("labels")
    return isinstance(labels, Mapping) and QUEUE_LABEL in labels


def is_shared_template(workload: Workload, template: str) -> bool:
    """Return whether pods without a GPU are made of *template* too."""
    group = workload.ref.api_version.rpartition("/")[0]
    return (group, workload.ref.kind, template) == _FLAT


def _has_fixed_owner(metadata: Json) -> bool:
    owners = entries(metadata.get("ownerReferences"), "metadata.ownerReferences")
    return any(
        owner.get("controller") is True
        and (str(owner.get("apiVersion")).rpartition("/")[0], owner.get("kind")) in FIXED_OWNERS
        for owner, _ in owners
    )
