"""The kind JobSet as its own project defines it, and one that trains a ResNet-50.

a Go module, batch size, card -> CustomResourceDefinition, JobSet
"""

from __future__ import annotations

from typing import Any

from tests.e2e.nodes import GpuNode
from tests.e2e.operators.catalog import JOBSET
from tests.e2e.workloads import resnet50_job


def definition() -> dict[str, Any]:
    """Return the definition of the kind, with the whole schema of a pod in it.

    Raises:
        BuildError: if its module cannot be had.
    """
    (document,) = JOBSET.definitions()
    return document


def resnet50_jobset(namespace: str, *, batch_size: int, card: GpuNode) -> dict[str, Any]:
    """Return a JobSet of two equal Jobs, each on one card of the product of *card*."""
    job = resnet50_job(namespace, batch_size=batch_size, card=card)
    workers = {"name": "workers", "replicas": 2, "template": {"spec": job["spec"]}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": job["metadata"],
        "spec": {"replicatedJobs": [workers]},
    }
