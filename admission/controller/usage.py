"""Which cards of the cluster are taken now.

    pods that hold devices, NodeClass -> CardUse

By what pods ask for, as the scheduler counts. Not modelled: devices of claims (DRA), and what a
scheduler of shares counts beside it (HAMi, KAI).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from admission.controller.pods import PodView
from admission.values import NodeClass

ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class CardUse:
    """The cards of one name, over all nodes that have them now."""

    name: str
    num_nodes: int
    total: int
    taken: int
    is_free: bool
    """Whether one node has as many left as one pod asks for."""

    @property
    def said(self) -> str:
        """Return `NVIDIA-A10 (8 of 8 taken)`."""
        if not self.num_nodes:
            return f"{self.name} (no node has one now)"
        return f"{self.name} ({self.taken} of {self.total} taken)"


def taken_by_node(pods: Iterable[PodView]) -> Mapping[tuple[str, str], int]:
    """Return how many devices of a resource are taken on a node: (node, resource) -> number."""
    taken: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        node = pod.node
        if node is not None and pod.phase not in ENDED:
            for resource, number in pod.devices:
                taken[node, resource] += number
    return taken


def uses_of(
    classes: Iterable[NodeClass],
    taken: Mapping[tuple[str, str], int],
    *,
    wanted: int,
    is_there: Callable[[str], bool],
) -> tuple[CardUse, ...]:
    """Return the use of the cards of *classes*, by name; *wanted* are those of one pod."""
    found: dict[str, CardUse] = {}
    for node_class in classes:
        nodes = [name for name in node_class.nodes if is_there(name)]
        used = [taken.get((name, node_class.gpu_resource), 0) for name in nodes]
        has_room = any(node_class.gpus_per_node - number >= wanted for number in used)
        before = found.get(node_class.name)
        found[node_class.name] = CardUse(
            name=node_class.name,
            num_nodes=len(nodes) + (before.num_nodes if before else 0),
            total=len(nodes) * node_class.gpus_per_node + (before.total if before else 0),
            taken=sum(used) + (before.taken if before else 0),
            is_free=has_room or (before is not None and before.is_free),
        )
    return tuple(found.values())
