"""One object of each kind, and the pods it should lead to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from admission.values import Document, Documents

GPU = "nvidia.com/gpu"


def pod(*command: str, gpus: object = 2, name: str = "train", **fields: Any) -> dict[str, Any]:
    """Return a pod spec with a side container and one with GPUs."""
    container: dict[str, Any] = {"name": name, "resources": {"limits": {GPU: gpus}}, **fields}
    if command:
        container["command"] = list(command)
    return {"containers": [{"name": "side"}, container]}


def template(*command: str, gpus: object = 2, **fields: Any) -> dict[str, Any]:
    """Return a pod template around `pod`."""
    return {"spec": pod(*command, gpus=gpus, **fields)}


def roles(**replicas: int | str | None) -> dict[str, Any]:
    """Return role -> replicas and template, as the training operator's kinds have them."""
    return {
        role: {
            **({} if number is None else {"replicas": number}),
            "template": template(),
        }
        for role, number in replicas.items()
    }


def job_spec(**fields: Any) -> dict[str, Any]:
    """Return the spec of a batch/v1 Job."""
    return {**fields, "template": template()}


RUNTIME = yaml.safe_load(
    """
    apiVersion: trainer.kubeflow.org/v1alpha1
    kind: ClusterTrainingRuntime
    metadata: {name: torch, labels: {trainer.kubeflow.org/framework: torch}}
    spec:
      mlPolicy: {numNodes: 3, torch: {}}
      template:
        spec:
          replicatedJobs:
            - name: model-initializer
              template:
                metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: model-initializer}}
                spec: {template: {spec: {containers: [{name: model-initializer}]}}}
            - name: node
              template:
                metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
                spec:
                  template:
                    spec:
                      containers:
                        - name: node
                          image: base
                          command: [torchrun, base.py]
                          env: [{name: A, value: runtime}, {name: B, value: runtime}]
                          resources: {limits: {nvidia.com/gpu: 2}}
    """
)
NODE_PATH = "spec.template.spec.replicatedJobs[1].template.spec.template"


def runtime_documents(runtime: Mapping[str, Any] = RUNTIME) -> Documents:
    """Return the documents in which *runtime* is what TrainJobs refer to."""
    kind, name = str(runtime["kind"]).lower(), runtime["metadata"]["name"]
    return {f"{kind}/{name}": Document(files={"": yaml.safe_dump(dict(runtime))})}


def trainjob(trainer: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a TrainJob of `RUNTIME`."""
    body = {"runtimeRef": {"name": "torch"}, **spec}
    if trainer is not None:
        body["trainer"] = dict(trainer)
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "t"},
        "spec": body,
    }


def workflow(*templates: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """Return an Argo Workflow that begins with `main`."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "w"},
        "spec": {"entrypoint": "main", "templates": list(templates), **spec},
    }


def gpu_template(name: str = "main", **fields: Any) -> dict[str, Any]:
    """Return an Argo template with one container on a GPU."""
    container = {"image": "i", "command": ["train"], "resources": {"limits": {GPU: 2}}}
    return {"name": name, "container": container, **fields}


def _kubeflow(kind: str, key: str, **replicas: int | None) -> dict[str, Any]:
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "spec": {key: roles(**replicas)}}


OBJECTS: dict[str, dict[str, Any]] = {
    "Pod": {"apiVersion": "v1", "kind": "Pod", "spec": pod()},
    "Job": {"apiVersion": "batch/v1", "kind": "Job", "spec": job_spec(parallelism=3)},
    "CronJob": {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "spec": {"jobTemplate": {"spec": job_spec()}},
    },
    "Deployment": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": job_spec(replicas=2)},
    "StatefulSet": {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": job_spec()},
    "Notebook": {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "spec": job_spec()},
    "PyTorchJob": _kubeflow("PyTorchJob", "pytorchReplicaSpecs", Master=None, Worker=4),
    "TFJob": _kubeflow("TFJob", "tfReplicaSpecs", Chief=1, PS=2, Worker=4),
    "JAXJob": _kubeflow("JAXJob", "jaxReplicaSpecs", Worker=4),
    "MXJob": _kubeflow("MXJob", "mxReplicaSpecs", Scheduler=1, Server=2, Worker=4),
    "XGBoostJob": _kubeflow("XGBoostJob", "xgbReplicaSpecs", Master=1, Worker=4),
    "PaddleJob": _kubeflow("PaddleJob", "paddleReplicaSpecs", Worker=4),
    "MPIJob": _kubeflow("MPIJob", "mpiReplicaSpecs", Launcher=1, Worker=4),
    "JobSet": {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "spec": {
            "replicatedJobs": [
                {"name": "node", "replicas": 2, "template": {"spec": job_spec(parallelism=3)}}
            ]
        },
    },
    "LeaderWorkerSet": {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "spec": {
            "replicas": 2,
            "leaderWorkerTemplate": {
                "size": 4,
                "leaderTemplate": template(),
                "workerTemplate": template(),
            },
        },
    },
    "ClusterTrainingRuntime": RUNTIME,
    "VolcanoJob": {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "spec": {"tasks": [{"name": "worker", "replicas": 2, "template": template()}]},
    },
    "RayJob": {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "spec": {
            "entrypoint": "python x.py",
            "rayClusterSpec": {
                "headGroupSpec": {"template": template()},
                "workerGroupSpecs": [{"groupName": "g", "replicas": 3, "template": template()}],
            },
        },
    },
    "Workflow": workflow(gpu_template()),
    "CronWorkflow": {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "CronWorkflow",
        "spec": {"workflowSpec": {"entrypoint": "main", "templates": [gpu_template()]}},
    },
    "WorkflowTemplate": {**workflow(gpu_template()), "kind": "WorkflowTemplate"},
    "ClusterWorkflowTemplate": {**workflow(gpu_template()), "kind": "ClusterWorkflowTemplate"},
    "Workspace": {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": "w"},
        "resource": {
            "instanceType": "Standard_NC48ads_A100_v4",
            "labelSelector": {"matchLabels": {"apps": "tuning"}},
        },
        "tuning": {"preset": {"name": "phi-3-mini-4k-instruct"}, "method": "qlora"},
    },
    "HyperPodPyTorchJob": {
        "apiVersion": "sagemaker.amazonaws.com/v1",
        "kind": "HyperPodPyTorchJob",
        "spec": {"replicaSpecs": [{"name": "pods", "replicas": 2, "template": template()}]},
    },
    "ElasticJob": {
        "apiVersion": "elastic.pytorch.org/v1alpha1",
        "kind": "ElasticJob",
        "spec": {"replicaSpecs": roles(Worker=2)},
    },
}

_SIDE = ".spec.containers[1]"
PODS: dict[str, list[tuple[str, str, str, int]]] = {
    "Pod": [("main", "", "spec.containers[1]", 1)],
    "Job": [("main", "spec.template", f"spec.template{_SIDE}", 3)],
    "CronJob": [
        (
            "main",
            "spec.jobTemplate.spec.template",
            f"spec.jobTemplate.spec.template{_SIDE}",
            1,
        )
    ],
    "Deployment": [("main", "spec.template", f"spec.template{_SIDE}", 2)],
    "StatefulSet": [("main", "spec.template", f"spec.template{_SIDE}", 1)],
    "Notebook": [("main", "spec.template", f"spec.template{_SIDE}", 1)],
    **{
        kind: [
            (role, f"spec.{key}.{role}.template", f"spec.{key}.{role}.template{_SIDE}", number)
            for role, number in replicas
        ]
        for kind, key, replicas in (
            ("PyTorchJob", "pytorchReplicaSpecs", (("Master", 1), ("Worker", 4))),
            ("TFJob", "tfReplicaSpecs", (("Chief", 1), ("PS", 2), ("Worker", 4))),
            ("JAXJob", "jaxReplicaSpecs", (("Worker", 4),)),
            ("MXJob", "mxReplicaSpecs", (("Scheduler", 1), ("Server", 2), ("Worker", 4))),
            ("XGBoostJob", "xgbReplicaSpecs", (("Master", 1), ("Worker", 4))),
            ("PaddleJob", "paddleReplicaSpecs", (("Worker", 4),)),
            ("MPIJob", "mpiReplicaSpecs", (("Launcher", 1), ("Worker", 4))),
            ("ElasticJob", "replicaSpecs", (("Worker", 2),)),
        )
    },
    "JobSet": [
        (
            "node",
            "spec.replicatedJobs[0].template.spec.template",
            f"spec.replicatedJobs[0].template.spec.template{_SIDE}",
            2 * 3,
        )
    ],
    "LeaderWorkerSet": [
        (
            role,
            f"spec.leaderWorkerTemplate.{role}Template",
            f"spec.leaderWorkerTemplate.{role}Template{_SIDE}",
            number,
        )
        for role, number in (("leader", 2), ("worker", 2 * 3))
    ],
    "ClusterTrainingRuntime": [("node", NODE_PATH, f"{NODE_PATH}.spec.containers[0]", 3)],
    "VolcanoJob": [("worker", "spec.tasks[0].template", f"spec.tasks[0].template{_SIDE}", 2)],
    "RayJob": [
        (role, f"spec.rayClusterSpec.{at}.template", f"spec.rayClusterSpec.{at}.template{_SIDE}", n)
        for role, at, n in (("head", "headGroupSpec", 1), ("g", "workerGroupSpecs[0]", 3))
    ],
    "Workflow": [("main", "spec.templates[0]", "spec.templates[0].container", 1)],
    "CronWorkflow": [
        ("main", "spec.workflowSpec.templates[0]", "spec.workflowSpec.templates[0].container", 1)
    ],
    "WorkflowTemplate": [("main", "spec.templates[0]", "spec.templates[0].container", 1)],
    "ClusterWorkflowTemplate": [("main", "spec.templates[0]", "spec.templates[0].container", 1)],
    "Workspace": [("tuning", "tuning", "tuning", 1)],
    "HyperPodPyTorchJob": [
        ("pods", "spec.replicaSpecs[0].template", f"spec.replicaSpecs[0].template{_SIDE}", 2)
    ],
}
"""Role, pod template, container, replicas of each unit, in order."""
