"""The kind JobSet as its own project defines it, and one that trains a ResNet-50.

    a Go module, batch size, card -> CustomResourceDefinition, JobSet

No controller of JobSet's runs: what it would make of one is made by the tests.
"""

from __future__ import annotations

from typing import Any

import yaml

from tests import gobuild
from tests.e2e.nodes import GpuNode
from tests.e2e.workloads import resnet50_job

MODULE = "sigs.k8s.io/jobset"
VERSION = "v0.12.0"
CHECKSUM = "h1:YYPuV0px8Ongq/RXmJg6V0w2UC67aiR+rCMD06vhQQQ="
FILE = "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"


def definition() -> dict[str, Any]:
    """Return the definition of the kind, with the whole schema of a pod in it.

    Raises:
        BuildError: if its module cannot be had.
    """
    folder = gobuild.downloaded(MODULE, version=VERSION, checksum=CHECKSUM)
    # The file is 0.8 MB: the parser in C takes a tenth of the time.
    document: dict[str, Any] = yaml.load((folder / FILE).read_bytes(), Loader=yaml.CSafeLoader)
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
