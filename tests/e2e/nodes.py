"""Make nodes that look as if GPU feature discovery had labelled them.

    GpuNode -> a Node object, Ready, with GPUs to give

Nothing stands behind them: no kubelet, so pods on them are scheduled and stay so.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

from kubernetes import client

HOSTNAME = "kubernetes.io/hostname"

POOL = "example.com/pool"

HAMI = "hami.io/node-nvidia-register"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A MIG profile of a node, as a resource of its own."""

    profile: str
    memory_mib: int
    count: int

    @property
    def resource(self) -> str:
        """Return what a pod asks for."""
        return f"nvidia.com/mig-{self.profile}"

    def labels(self, product: str) -> Iterator[tuple[str, str]]:
        """Yield what GPU feature discovery writes beside the labels of the whole card."""
        yield f"{self.resource}.product", f"{product}-MIG-{self.profile}"
        yield f"{self.resource}.memory", str(self.memory_mib)
        yield f"{self.resource}.count", str(self.count)
        yield f"{self.resource}.replicas", "1"
        yield f"{self.resource}.sharing-strategy", "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNode:
    """A node and its cards, in the words of the `nvidia.com/gpu.*` labels."""

    name: str
    product: str
    memory_mib: int
    """NVML total of one card: the value of the label."""
    compute: tuple[int, int]
    count: int = 8
    pool: str = ""
    """A label of ours, for jobs that may go to these nodes alone."""
    slices: tuple[Slice, ...] = ()
    """What the cards are cut into, by the plugin's `mixed` strategy."""
    registration: str = ""
    """What HAMi's device plugin writes down, if that shares the cards."""

    @property
    def labels(self) -> dict[str, str]:
        """Return what GPU feature discovery writes for such a node."""
        major, minor = self.compute
        cut = {name: text for part in self.slices for name, text in part.labels(self.product)}
        return cut | {
            **({POOL: self.pool} if self.pool else {}),
            HOSTNAME: self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": self.product,
            "nvidia.com/gpu.memory": str(self.memory_mib),
            "nvidia.com/gpu.count": str(self.count),
            "nvidia.com/gpu.replicas": "1",
            "nvidia.com/gpu.sharing-strategy": "none",
            "nvidia.com/gpu.compute.major": str(major),
            "nvidia.com/gpu.compute.minor": str(minor),
        }


T4 = GpuNode(name="node-t4", product="Tesla-T4", memory_mib=15360, compute=(7, 5))
"""A 16 GiB card, as sold; the driver reports 15 GiB."""

A100 = GpuNode(name="node-a100", product="NVIDIA-A100-SXM4-40GB", memory_mib=40960, compute=(8, 0))

A10 = GpuNode(name="node-a10", product="NVIDIA-A10", memory_mib=23028, compute=(8, 6))


def create(node: GpuNode, core: client.CoreV1Api) -> None:
    """Create *node*, then give it its GPUs and the Ready condition through its status."""
    annotations = {HAMI: node.registration} if node.registration else {}
    metadata = client.V1ObjectMeta(name=node.name, labels=node.labels, annotations=annotations)
    core.create_node(client.V1Node(metadata=metadata))
    resources = {
        "cpu": "64",
        "memory": "512Gi",
        "ephemeral-storage": "1Ti",
        "pods": "110",
        "nvidia.com/gpu": str(node.count),
        **{part.resource: str(part.count) for part in node.slices},
    }
    now = datetime.datetime.now(datetime.UTC).isoformat()
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "no kubelet: made by tests/e2e",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    status = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
    core.patch_node_status(node.name, {"status": status})
