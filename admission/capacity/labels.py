"""Labels and annotations of nodes, and the values in them.

    Node -> text by key; text -> numbers

GPU feature discovery's spellings: NVIDIA/k8s-device-plugin 1b826acc `internal/lm/nvml.go`,
`internal/lm/resource.go`; older ones: NVIDIA/gpu-feature-discovery v0.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.values import Json
from admission.workloads.fields import mapping
from estimator.device import ComputeCapability
from estimator.units import MIB

GPU = "nvidia.com/gpu"

_MOST_MIB = 10_000_000
"""Old GPU feature discovery wrote bytes (gpu-feature-discovery#26): larger values are bytes."""


_TELLING = (
    "nvidia.com/",
    "gpu.nvidia.com/",
    "amd.com/",
    "beta.amd.com/",
    "cloud.google.com/gke-",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu",
    "eks.amazonaws.com/instance-gpu",
    "karpenter.azure.com/sku-gpu",
    "aliyun.accelerator/",
    "node.koordinator.sh/",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
)
"""Labels that say something of cards; no other is read here."""
_TIMESTAMP = "nvidia.com/gfd.timestamp"


def labels_of(node: Json) -> Mapping[str, str]:
    """Return the labels of *node* that say something of its cards.

    Raises:
        RequestError: if labels are no mapping.
    """
    return {
        name: str(value)
        for name, value in _metadata(node, "labels").items()
        if name.startswith(_TELLING) and name != _TIMESTAMP
    }


def annotations_of(node: Json) -> Mapping[str, str]:
    """Return the annotations of *node*.

    Raises:
        RequestError: if they are no mapping.
    """
    return {name: str(value) for name, value in _metadata(node, "annotations").items()}


def _metadata(node: Json, key: str) -> Json:
    metadata = mapping(node.get("metadata"), "metadata")
    return mapping(metadata.get(key), f"metadata.{key}")


def whole(value: object) -> int | None:
    """Return a count written as an integer or its text; None for anything else."""
    text = str(value).strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def mebibytes(text: str | None) -> int | None:
    """Return a memory label in MiB; None if it is missing, zero or no number."""
    value = whole(text)
    if not value:
        return None
    return value // MIB if value > _MOST_MIB else value


def capability_of(labels: Mapping[str, str]) -> ComputeCapability | None:
    """Return the compute capability that GPU feature discovery labels."""
    major = whole(labels.get(f"{GPU}.compute.major"))
    minor = whole(labels.get(f"{GPU}.compute.minor"))
    return (major, minor or 0) if major else None


def driver_of(labels: Mapping[str, str]) -> str | None:
    """Return the driver's version; older GPU feature discovery spelled the labels differently."""
    if full := labels.get("nvidia.com/cuda.driver-version.full"):
        return full
    for keys in (
        [f"nvidia.com/cuda.driver-version.{part}" for part in ("major", "minor", "revision")],
        [f"nvidia.com/cuda.driver.{part}" for part in ("major", "minor", "rev")],
    ):
        parts = [labels[key] for key in keys if labels.get(key)]
        if parts:
            return ".".join(parts)
    return None
