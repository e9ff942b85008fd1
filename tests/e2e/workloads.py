"""Build the workloads that the tests submit.

    batch size, card -> a Job, CronJob or PyTorchJob that trains a ResNet-50

The training spec is given by the `vramgate.dev/spec` annotation (contracts: it beats detection),
so these tests try the way through a cluster and not the reading of command lines.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from tests.e2e.nodes import GpuNode

SPEC_ANNOTATION = "vramgate.dev/spec"

_numbers = itertools.count(1)


def resnet50_spec(*, batch_size: int) -> dict[str, Any]:
    """Return the JobSpec of a plain fp32 training step of ResNet-50 at 224 x 224."""
    return {
        "apiVersion": "vramgate.dev/v1",
        "kind": "JobSpec",
        "framework": "pytorch",
        "model": {"source": "torchvision", "name": "resnet50"},
        "input": {"batchSize": batch_size, "imageSize": [3, 224, 224]},
        "training": {"precision": "fp32", "optimizer": {"name": "sgd", "momentum": 0.9}},
    }


def resnet50_job(namespace: str, *, batch_size: int, card: GpuNode) -> dict[str, Any]:
    """Return a Job that trains on one card of the product of *card*."""
    return _job(
        namespace,
        name=_name("resnet50"),
        annotations=_annotations(batch_size),
        pod=pod_spec(num_gpus=1, card=card),
    )


def scripted_job(namespace: str, *, config_map: str, card: GpuNode) -> dict[str, Any]:
    """Return a Job that runs the script `run.sh` of *config_map*; nothing else says what it is."""
    pod = pod_spec(num_gpus=1, card=card)
    pod["containers"][0] |= {
        "command": ["bash", "/launch/run.sh"],
        "volumeMounts": [{"name": "launch", "mountPath": "/launch"}],
    }
    pod["volumes"] = [{"name": "launch", "configMap": {"name": config_map}}]
    return _job(namespace, name=_name("scripted"), annotations={}, pod=pod)


def script_config_map(namespace: str, *, batch_size: int) -> dict[str, Any]:
    """Return a ConfigMap with a script that trains a ResNet-50 by torchvision's reference."""
    script = (
        "set -e\ncd /workspace/vision/references/classification\n"
        f"python train.py --model resnet50 --batch-size {batch_size} --data-path /data\n"
    )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": _name("launch")},
        "data": {"run.sh": script},
    }


def resnet50_cronjob(namespace: str, *, batch_size: int, card: GpuNode) -> dict[str, Any]:
    """Return a CronJob whose jobs train on one card of the product of *card*."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {
            "namespace": namespace,
            "name": _name("nightly"),
            "annotations": _annotations(batch_size),
        },
        "spec": {
            "schedule": "0 3 * * *",
            "jobTemplate": {"spec": {"template": {"spec": pod_spec(num_gpus=1, card=card)}}},
        },
    }


def resnet50_pytorchjob(namespace: str, *, batch_size: int, card: GpuNode) -> dict[str, Any]:
    """Return a PyTorchJob with one master on one card of the product of *card*."""
    pod = pod_spec(num_gpus=1, card=card)
    pod["containers"][0]["name"] = "pytorch"
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "namespace": namespace,
            "name": _name("distributed"),
            "annotations": _annotations(batch_size),
        },
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": {"spec": pod}}}},
    }


def unreadable_job(namespace: str, *, card: GpuNode) -> dict[str, Any]:
    """Return a GPU Job that says nothing about its model: all is inside the image."""
    pod = pod_spec(num_gpus=1, card=card)
    return _job(namespace, name=_name("unreadable"), annotations={}, pod=pod)


def job_without_gpus(namespace: str) -> dict[str, Any]:
    """Return a Job that asks for a processor only."""
    pod = pod_spec(num_gpus=0, card=None)
    return _job(namespace, name=_name("plain"), annotations={}, pod=pod)


def pod_spec(*, num_gpus: int, card: GpuNode | None) -> dict[str, Any]:
    """Return a pod spec; the image need not exist, since no kubelet pulls it."""
    limits = {"cpu": "1", "memory": "8Gi"}
    if num_gpus:
        limits["nvidia.com/gpu"] = str(num_gpus)
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "train",
                "image": "example.com/train:1",
                "command": ["python", "train.py"],
                "resources": {"limits": limits},
            }
        ],
    }
    if card is not None:
        spec["nodeSelector"] = {"nvidia.com/gpu.product": card.product}
    return spec


def _job(
    namespace: str, *, name: str, annotations: Mapping[str, str], pod: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"namespace": namespace, "name": name, "annotations": dict(annotations)},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }


def _annotations(batch_size: int) -> dict[str, str]:
    return {SPEC_ANNOTATION: json.dumps(resnet50_spec(batch_size=batch_size))}


def _name(stem: str) -> str:
    """Return a name that no other workload of this run has."""
    return f"{stem}-{next(_numbers)}"
