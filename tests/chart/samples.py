"""One object of each kind that the chart's rules name, around any pod template.

pod template -> Pod, Job, PyTorchJob, …; what changes what one needs; its definition
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.chart.rendering import Document

NAMESPACE = "train"

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How objects of one kind are made."""

    api_version: str
    kind: str
    body: Callable[[Document], Document]
    """Pod template -> everything beside the metadata."""
    change: Document = field(default_factory=lambda: {"spec": {"changed": "yes"}})
    """A change of what the object says of its pods."""
    observed: bool = False
    """Counted only: not sent to `/mutate`."""
    hides_gpus: bool = False
    """No condition can see its GPUs: sent without any, too."""

    @property
    def group(self) -> str:
        """Return the API group."""
        return self.api_version.rpartition("/")[0]

    def made(self, template: Document, **metadata: Any) -> Document:
        """Return an object of this kind with a name of its own."""
        name = f"{self.kind.lower()}-{next(_numbers)}"
        body = self.body(template)
        # A Pod is its template.
        head = {"namespace": NAMESPACE, "name": name, **metadata, **body.get("metadata", {})}
        return {
            **body,
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": head,
        }


def template(resources: Document | None = None, **pod: Any) -> Document:
    """Return a pod template whose one container has *resources*."""
    container = {"name": "train", "image": "example.com/train:1", "resources": resources or {}}
    return {"spec": {"restartPolicy": "Never", "containers": [container], **pod}}


def gpu_template() -> Document:
    """Return a pod template with one GPU."""
    return template({"limits": {"cpu": "1", "nvidia.com/gpu": "1"}})


def cpu_template() -> Document:
    """Return a pod template with a processor only."""
    return template({"limits": {"cpu": "1"}})


def _roles(key: str) -> Callable[[Document], Document]:
    return lambda pod: {
        "spec": {key: {"Master": {"template": cpu_template()}, "Worker": pod_of(pod)}}
    }


def pod_of(pod: Document) -> Document:
    """Return a role of one pod."""
    return {"replicas": 1, "template": pod}


def _served(pod: Document) -> Document:
    labels = {"app": "served"}
    spec = {**pod["spec"], "restartPolicy": "Always"}
    return {
        "spec": {
            "selector": {"matchLabels": labels},
            "replicas": 0,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        }
    }


def _ray(pod: Document) -> Document:
    groups = [{"groupName": "gpu", "template": pod}]
    return {"headGroupSpec": {"template": cpu_template()}, "workerGroupSpecs": groups}


def workflow(pod: Document, **fields: Any) -> Document:
    """Return the spec of a workflow with one template that is *pod*'s container."""
    (container,) = pod["spec"]["containers"]
    return {"entrypoint": "main", "templates": [{"name": "main", "container": container}], **fields}


POD = Sample(api_version="v1", kind="Pod", body=lambda pod: pod)
JOB = Sample(
    api_version="batch/v1",
    kind="Job",
    body=lambda pod: {"spec": {"suspend": True, "template": pod}},
    change={"spec": {"suspend": False}},
)
PYTORCHJOB = Sample(
    api_version="kubeflow.org/v1", kind="PyTorchJob", body=_roles("pytorchReplicaSpecs")
)
MPIJOB = Sample(api_version="kubeflow.org/v1", kind="MPIJob", body=_roles("mpiReplicaSpecs"))
TRAINJOB = Sample(
    api_version="trainer.kubeflow.org/v1alpha1",
    kind="TrainJob",
    body=lambda _: {"spec": {"runtimeRef": {"name": "torch-distributed"}}},
    hides_gpus=True,
)
WORKFLOW = Sample(
    api_version="argoproj.io/v1alpha1", kind="Workflow", body=lambda pod: {"spec": workflow(pod)}
)
WORKSPACE = Sample(
    api_version="kaito.sh/v1beta1",
    kind="Workspace",
    body=lambda _: {
        "resource": {"instanceType": "Standard_NC24ads_A100_v4"},
        "tuning": {"preset": {"name": "phi-3-mini-4k-instruct"}, "method": "qlora"},
    },
    change={"tuning": {"method": "lora"}},
    hides_gpus=True,
)

SAMPLES = (
    POD,
    JOB,
    Sample(
        api_version="batch/v1",
        kind="CronJob",
        body=lambda pod: {
            "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": pod}}}
        },
        change={"spec": {"schedule": "0 4 * * *"}},
    ),
    PYTORCHJOB,
    Sample(api_version="kubeflow.org/v1", kind="TFJob", body=_roles("tfReplicaSpecs")),
    Sample(api_version="kubeflow.org/v1", kind="JAXJob", body=_roles("jaxReplicaSpecs")),
    Sample(api_version="kubeflow.org/v1", kind="MXJob", body=_roles("mxReplicaSpecs")),
    Sample(api_version="kubeflow.org/v1", kind="XGBoostJob", body=_roles("xgbReplicaSpecs")),
    Sample(api_version="kubeflow.org/v1", kind="PaddleJob", body=_roles("paddleReplicaSpecs")),
    MPIJOB,
    Sample(
        api_version="jobset.x-k8s.io/v1alpha2",
        kind="JobSet",
        body=lambda pod: {
            "spec": {
                "replicatedJobs": [
                    {"name": "a", "template": {"spec": {"template": cpu_template()}}},
                    {"name": "b", "template": {"spec": {"template": pod}}},
                ]
            }
        },
    ),
    Sample(
        api_version="leaderworkerset.x-k8s.io/v1",
        kind="LeaderWorkerSet",
        body=lambda pod: {"spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": pod}}},
    ),
    TRAINJOB,
    Sample(
        api_version="batch.volcano.sh/v1alpha1",
        kind="Job",
        body=lambda pod: {
            "spec": {"tasks": [{"name": "ps", "template": cpu_template()}, pod_of(pod)]}
        },
    ),
    Sample(
        api_version="ray.io/v1",
        kind="RayJob",
        body=lambda pod: {"spec": {"entrypoint": "python a.py", "rayClusterSpec": _ray(pod)}},
    ),
    WORKFLOW,
    Sample(
        api_version="argoproj.io/v1alpha1",
        kind="CronWorkflow",
        body=lambda pod: {"spec": {"schedule": "0 3 * * *", "workflowSpec": workflow(pod)}},
    ),
    WORKSPACE,
    Sample(
        api_version="sagemaker.amazonaws.com/v1",
        kind="HyperPodPyTorchJob",
        body=lambda pod: {"spec": {"replicaSpecs": [{"name": "pods", **pod_of(pod)}]}},
    ),
    Sample(
        api_version="elastic.pytorch.org/v1alpha1",
        kind="ElasticJob",
        body=lambda pod: {"spec": {"replicaSpecs": {"Worker": pod_of(pod)}}},
    ),
    Sample(
        api_version="apps/v1",
        kind="Deployment",
        body=_served,
        change={"spec": {"minReadySeconds": 1}},
        observed=True,
    ),
    Sample(
        api_version="apps/v1",
        kind="StatefulSet",
        body=_served,
        change={"spec": {"minReadySeconds": 1}},
        observed=True,
    ),
    Sample(
        api_version="kubeflow.org/v1",
        kind="Notebook",
        body=lambda pod: {"spec": {"template": pod}},
        observed=True,
    ),
    Sample(
        api_version="ray.io/v1",
        kind="RayCluster",
        body=lambda pod: {"spec": _ray(pod)},
        observed=True,
    ),
)

BUILT_IN = ("", "batch", "apps")
"""API groups that every API server has."""
