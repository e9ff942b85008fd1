"""Builders for the jobs that detection tests read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from admission.detect import read_unit
from admission.values import Document, Documents, Reading, Workload
from admission.workloads import read_workload

GPU = "nvidia.com/gpu"


def container(
    *argv: str, gpus: int | str = 1, env: Mapping[str, object] | None = None, **fields: object
) -> dict[str, Any]:
    """Return a GPU container with *argv* as its args."""
    body: dict[str, Any] = {"name": "train", "resources": {"limits": {GPU: gpus}}, **fields}
    if argv:
        body["args"] = list(argv)
    if env:
        body["env"] = [
            {"name": name, **(value if isinstance(value, dict) else {"value": value})}
            for name, value in env.items()
        ]
    return body


def job(
    body: Mapping[str, Any],
    *,
    annotations: Mapping[str, str] | None = None,
    template_annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a batch/v1 Job around one container."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "annotations": dict(annotations or {})},
        "spec": {
            "template": {
                "metadata": {"annotations": dict(template_annotations or {})},
                "spec": {"containers": [body]},
            }
        },
    }


def pytorchjob(body: Mapping[str, Any], *, workers: int) -> dict[str, Any]:
    """Return a PyTorchJob with a Master and *workers* Workers of the same container."""
    template = {"spec": {"containers": [body]}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "train"},
        "spec": {
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, "template": template},
                "Worker": {"replicas": workers, "template": template},
            }
        },
    }


def read(obj: Mapping[str, Any], *, documents: Documents | None = None) -> Reading:
    """Return the reading of the first unit of *obj*."""
    workload: Workload = read_workload(obj)
    return read_unit(workload.units[0], workload=workload, documents=documents or {})


def config_map(name: str, **files: str) -> Documents:
    """Return the documents that hold a ConfigMap; `__` in a key stands for a dot."""
    data = {key.replace("__", "."): value for key, value in files.items()}
    return {f"configmap/{name}": Document(files=data)}


def read_args(*argv: str, gpus: int = 1, **fields: Any) -> Reading:
    """Return the reading of a Job whose container has *argv*."""
    return read(job(container(*argv, gpus=gpus, **fields)))


def read_with_files(line: str, *, gpus: int = 1, **files: str) -> Reading:
    """Return the reading of a Job that runs *line* with *files* in a ConfigMap mounted at `/c`."""
    mount = {"name": "config", "mountPath": "/c"}
    whole = job(container(*line.split(), gpus=gpus, volumeMounts=[mount]))
    whole["spec"]["template"]["spec"]["volumes"] = [
        {"name": "config", "configMap": {"name": "config"}}
    ]
    return read(whole, documents=config_map("config", **files))


def read_script(script: str, *, gpus: int = 1, **fields: Any) -> Reading:
    """Return the reading of a Job that runs *script* in bash."""
    return read_args("bash", "-c", script, gpus=gpus, **fields)


def found(reading: Reading, *paths: str) -> dict[str, Any]:
    """Return the values at the dotted *paths* of what was understood; absent ones are None."""
    values: dict[str, Any] = {}
    for path in paths:
        part: Any = reading.partial
        for key in path.split("."):
            part = part.get(key) if isinstance(part, Mapping) else None
        values[path] = part
    return values


def codes(reading: Reading) -> Sequence[str]:
    """Return the codes of the unknowns."""
    return [finding.code for finding in reading.unknowns]
