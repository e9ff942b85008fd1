"""Make nodes that look as if GPU feature discovery had labelled them.

    GpuNode -> a Node object, Ready, with GPUs to give

Nothing stands behind them: no kubelet, so pods on them are scheduled and stay so.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from kubernetes import client


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNode:
    """A node and its cards, in the words of the `nvidia.com/gpu.*` labels."""

    name: str
    product: str
    memory_mib: int
    """NVML total of one card: the value of the label."""
    compute: tuple[int, int]
    count: int = 8

    @property
    def labels(self) -> dict[str, str]:
        """Return what GPU feature discovery writes for such a node."""
        major, minor = self.compute
        return {
            "kubernetes.io/hostname": self.name,
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


def create(node: GpuNode, core: client.CoreV1Api) -> None:
    """Create *node*, then give it its GPUs and the Ready condition through its status."""
    metadata = client.V1ObjectMeta(name=node.name, labels=node.labels)
    core.create_node(client.V1Node(metadata=metadata))
    resources = {
        "cpu": "64",
        "memory": "512Gi",
        "ephemeral-storage": "1Ti",
        "pods": "110",
        "nvidia.com/gpu": str(node.count),
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
