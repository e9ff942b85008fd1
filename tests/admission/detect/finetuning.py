"""Builders for jobs whose program reads a configuration file from a ConfigMap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from admission.values import Document, Reading
from tests.admission.detect.jobs import container, job, read

FOLDER = "/config"
ADAPTER = ("adapter.type", "adapter.rank", "adapter.alpha", "adapter.targetModules")


def read_with_files(
    *argv: str,
    files: Mapping[str, str],
    gpus: int = 1,
    env: Mapping[str, object] | None = None,
) -> Reading:
    """Return the reading of a Job that finds *files* of one ConfigMap in `/config`."""
    body = container(
        *argv, gpus=gpus, env=env, volumeMounts=[{"name": "config", "mountPath": FOLDER}]
    )
    obj: dict[str, Any] = job(body)
    spec = obj["spec"]["template"]["spec"]
    spec["volumes"] = [{"name": "config", "configMap": {"name": "tune"}}]
    return read(obj, documents={"configmap/tune": Document(files=files)})
