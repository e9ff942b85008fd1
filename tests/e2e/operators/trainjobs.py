"""TrainJobs and the runtime that describes their pods.

batch size, product -> a TrainJob that trains a ResNet-50 on one card
"""

from __future__ import annotations

from typing import Any

from tests.e2e.operators.made import NAMESPACE

API = "trainer.kubeflow.org/v1alpha1"
RUNTIME = "torch-distributed"


def runtime() -> dict[str, Any]:
    """Return a runtime of PyTorch, as trainer's own `torch-distributed`."""
    container = {"name": "node", "image": "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"}
    node = {"schedulerName": "nobody", "containers": [container]}  # cards are for other tests
    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = {"metadata": {"labels": step}, "spec": {"template": {"spec": node}}}
    return {
        "apiVersion": API,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": RUNTIME, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}},
        },
    }


def trainjob(name: str, *, batch_size: int, product: str = "") -> dict[str, Any]:
    """Return a TrainJob whose command says what it trains; GPUs are in it, pods in its runtime."""
    script = "/workspace/vision/references/classification/train.py"
    command = ["torchrun", script, "--model", "resnet50", "--batch-size", str(batch_size)]
    spec: dict[str, Any] = {
        "runtimeRef": {"name": RUNTIME},
        "trainer": {
            "command": [*command, "--data-path", "/data"],
            "resourcesPerNode": {"limits": {"nvidia.com/gpu": "1"}},
        },
    }
    if product:
        pod = {"nodeSelector": {"nvidia.com/gpu.product": product}}
        patch = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
        jobs = {"replicatedJobs": [patch]}
        change = {"trainingRuntimeSpec": {"template": {"spec": jobs}}}
        spec["runtimePatches"] = [{"manager": "example.com/person", **change}]
    return {
        "apiVersion": API,
        "kind": "TrainJob",
        "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": spec,
    }
