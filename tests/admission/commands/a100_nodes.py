"""Nodes of A100 cards, with a taint if need be."""

from __future__ import annotations

from typing import Any

from tests.builders import gpu_labels, node

TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


def a100(name: str = "a100", **more: Any) -> dict[str, Any]:
    """Return a node of eight A100."""
    labels = gpu_labels(product="NVIDIA-A100-SXM4-40GB", memory="40960", compute=(8, 0))
    return node(name, labels={**labels, **more.pop("labels", {})}, **more)
