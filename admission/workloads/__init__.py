"""Kubernetes objects, read one kind a file.

    object, documents -> Workload(units)

A kind is added by a file that reads it and a line in `KINDS`, or by the settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from admission.codes import ReasonCode
from admission.values import NO_DOCUMENTS, Documents, Json, Workload, WorkloadRef
from admission.workloads import started
from admission.workloads.fields import mapping, sequence, text
from admission.workloads.joining import joined
from admission.workloads.kind import Kind, Kinds, Pods
from admission.workloads.units import units_of
from estimator.deferred import Deferred, later, load

if TYPE_CHECKING:
    from admission.workloads import (
        argo,
        elasticjob,
        hyperpod,
        job,
        jobset,
        kaito,
        kubeflow,
        leaderworkerset,
        mpijob,
        pod,
        ray,
        served,
        trainingruntime,
        trainjob,
        volcano,
    )
else:
    argo = Deferred("admission.workloads.argo")
    elasticjob = Deferred("admission.workloads.elasticjob")
    hyperpod = Deferred("admission.workloads.hyperpod")
    job = Deferred("admission.workloads.job")
    jobset = Deferred("admission.workloads.jobset")
    kaito = Deferred("admission.workloads.kaito")
    kubeflow = Deferred("admission.workloads.kubeflow")
    leaderworkerset = Deferred("admission.workloads.leaderworkerset")
    mpijob = Deferred("admission.workloads.mpijob")
    pod = Deferred("admission.workloads.pod")
    ray = Deferred("admission.workloads.ray")
    served = Deferred("admission.workloads.served")
    trainingruntime = Deferred("admission.workloads.trainingruntime")
    trainjob = Deferred("admission.workloads.trainjob")
    volcano = Deferred("admission.workloads.volcano")

__all__ = ["KINDS", "Kind", "kind_of", "load_kinds", "read_workload"]

KINDS: Kinds = {
    ("", "Pod"): Kind(read=later(lambda: pod.read), has_started=later(lambda: pod.has_started)),
    ("batch", "Job"): Kind(read=later(lambda: job.read), has_started=started.by_status),
    ("batch", "CronJob"): Kind(read=later(lambda: job.read_cron), has_started=started.never),
    ("apps", "Deployment"): Kind(
        read=later(lambda: served.read), has_started=started.by_status, observe_only=True
    ),
    ("apps", "StatefulSet"): Kind(
        read=later(lambda: served.read), has_started=started.by_status, observe_only=True
    ),
    ("kubeflow.org", "Notebook"): Kind(
        read=later(lambda: served.read), has_started=started.by_status, observe_only=True
    ),
    ("kubeflow.org", "PyTorchJob"): Kind(
        read=later(lambda: kubeflow.PYTORCHJOB.read), has_started=started.by_status
    ),
    ("kubeflow.org", "TFJob"): Kind(
        read=later(lambda: kubeflow.TFJOB.read), has_started=started.by_status
    ),
    ("kubeflow.org", "JAXJob"): Kind(
        read=later(lambda: kubeflow.JAXJOB.read), has_started=started.by_status
    ),
    ("kubeflow.org", "MXJob"): Kind(
        read=later(lambda: kubeflow.MXJOB.read), has_started=started.by_status
    ),
    ("kubeflow.org", "XGBoostJob"): Kind(
        read=later(lambda: kubeflow.XGBOOSTJOB.read), has_started=started.by_status
    ),
    ("kubeflow.org", "PaddleJob"): Kind(
        read=later(lambda: kubeflow.PADDLEJOB.read), has_started=started.by_status
    ),
    ("kubeflow.org", "MPIJob"): Kind(
        read=later(lambda: mpijob.read), has_started=started.by_status
    ),
    ("jobset.x-k8s.io", "JobSet"): Kind(
        read=later(lambda: jobset.read), has_started=later(lambda: jobset.has_started)
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Kind(
        read=later(lambda: leaderworkerset.read), has_started=started.by_status
    ),
    ("trainer.kubeflow.org", "TrainJob"): Kind(
        read=later(lambda: trainjob.read), has_started=later(lambda: trainjob.has_started)
    ),
    ("trainer.kubeflow.org", "TrainingRuntime"): Kind(
        read=later(lambda: trainingruntime.read), has_started=started.never, explain_only=True
    ),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): Kind(
        read=later(lambda: trainingruntime.read), has_started=started.never, explain_only=True
    ),
    ("batch.volcano.sh", "Job"): Kind(
        read=later(lambda: volcano.read), has_started=later(lambda: volcano.has_started)
    ),
    ("ray.io", "RayJob"): Kind(
        read=later(lambda: ray.read_job), has_started=later(lambda: ray.has_started)
    ),
    ("ray.io", "RayCluster"): Kind(
        read=later(lambda: ray.read_cluster), has_started=started.by_status, observe_only=True
    ),
    ("argoproj.io", "Workflow"): Kind(read=later(lambda: argo.read), has_started=started.by_status),
    ("argoproj.io", "CronWorkflow"): Kind(
        read=later(lambda: argo.read_cron), has_started=started.never
    ),
    ("argoproj.io", "WorkflowTemplate"): Kind(
        read=later(lambda: argo.read), has_started=started.never, explain_only=True
    ),
    ("argoproj.io", "ClusterWorkflowTemplate"): Kind(
        read=later(lambda: argo.read), has_started=started.never, explain_only=True
    ),
    ("kaito.sh", "Workspace"): Kind(read=later(lambda: kaito.read), has_started=started.by_status),
    ("sagemaker.amazonaws.com", "HyperPodPyTorchJob"): Kind(
        read=later(lambda: hyperpod.read), has_started=started.by_status
    ),
    ("elastic.pytorch.org", "ElasticJob"): Kind(
        read=later(lambda: elasticjob.read), has_started=started.by_status
    ),
}
"""(API group, kind) -> its reader."""


def load_kinds() -> None:
    """Import the reader of every kind, so that the first object of one does not wait for it."""
    load(
        argo,
        elasticjob,
        hyperpod,
        job,
        jobset,
        kaito,
        kubeflow,
        leaderworkerset,
        mpijob,
        pod,
        ray,
        served,
        trainingruntime,
        trainjob,
        volcano,
    )


def kind_of(obj: Json, kinds: Kinds = KINDS) -> Kind | None:
    """Return how *obj* is read, None if its kind is not known."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    return kinds.get((api_version.rpartition("/")[0], kind))


def read_workload(
    obj: object,
    *,
    api_version: str | None = None,
    kind: str | None = None,
    documents: Documents = NO_DOCUMENTS,
    kinds: Kinds = KINDS,
) -> Workload:
    """Return the workload in *obj*; *api_version* and *kind* stand in where the object has none.

    *documents* are what was fetched for it: a TrainJob's pods are in another object.

    A kind that is not in *kinds*, or one that asks for no GPU, has `skip` set.

    Raises:
        RequestError: if the object is malformed; the message names the field path.
    """
    fields = mapping(obj, "")
    metadata = mapping(fields.get("metadata"), "metadata")
    ref = WorkloadRef(
        api_version=text(fields.get("apiVersion"), "apiVersion") or api_version or "",
        kind=text(fields.get("kind"), "kind") or kind or "",
        namespace=text(metadata.get("namespace"), "metadata.namespace"),
        name=text(metadata.get("name"), "metadata.name"),
    )
    mapping(metadata.get("annotations"), "metadata.annotations")
    reader = kinds.get((ref.api_version.rpartition("/")[0], ref.kind))
    pods = reader.read(fields, documents) if reader else Pods(skip=ReasonCode.KIND)
    units = joined(units_of(pods.templates, documents), pods)
    skip = _skip(pods, asks_for_gpu=bool(units))
    return Workload(
        ref=ref,
        units=() if skip else units,
        metadata=metadata,
        controlled=_is_controlled(metadata),
        started=reader.has_started(fields) if reader else False,
        skip=skip,
        framework=pods.framework,
        framework_source=pods.framework_source or f"kind {ref.kind}",
        observe_only=reader is not None and reader.observe_only,
        explain_only=reader is not None and reader.explain_only,
        wanted=pods.wanted,
        problems=() if skip else pods.problems,
    )


def _skip(pods: Pods, *, asks_for_gpu: bool) -> ReasonCode | None:
    """Return why nothing is judged; None if something is, or its pods could not be read."""
    if pods.skip is not None and (asks_for_gpu or not pods.templates):
        return pods.skip
    may_hide_gpus = any(one.code != ReasonCode.UNSUPPORTED for one in pods.problems)
    return None if asks_for_gpu or may_hide_gpus else ReasonCode.NO_GPU


def _is_controlled(metadata: Json) -> bool:
    path = "metadata.ownerReferences"
    owners = sequence(metadata.get("ownerReferences"), path)
    return any(
        mapping(owner, f"{path}[{index}]").get("controller") is True
        for index, owner in enumerate(owners)
    )
