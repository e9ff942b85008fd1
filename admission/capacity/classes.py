"""Which node classes the cluster has, each with the budget of one pod.

    Nodes -> NodeClasses

Pure. Occupancy, cordon and readiness are left out: a job may wait for a card.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from admission.capacity.cards import Card, Cards
from admission.capacity.pools import pool_nodes, told_by
from admission.values import Json, NodeClass, NodeFacts
from admission.workloads.fields import mapping, sequence, text

if TYPE_CHECKING:
    from admission.node_settings import NodeSettings

PASSING_TAINTS = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node.cluster.x-k8s.io/uninitialized",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "karpenter.sh/unregistered",
)
"""Taints that say how a node is today (cordoned, not ready, leaving), not what it is for."""


def classes_of(
    nodes: Iterable[Json], settings: NodeSettings | None = None
) -> tuple[NodeClass, ...]:
    """Return the GPU node classes of *nodes*, the largest budget first, unknown ones last.

    *settings* add pools that could still appear, and say what labels do not.

    Raises:
        RequestError: if a Node is malformed.
    """
    read = Cards(told_by(settings.classes if settings else ()))
    members: dict[Card, list[NodeFacts]] = {}
    here: list[NodeFacts] = []
    for node in nodes:
        cards = read.of(node)
        if not cards:
            continue
        facts = _facts(node)
        here.append(facts)
        for card in cards:
            members.setdefault(card, []).append(facts)
    for card, facts in pool_nodes(settings.pools if settings else (), here):
        members.setdefault(card, []).append(facts)
    classes = [_node_class(card, found) for card, found in members.items()]
    return tuple(sorted(classes, key=_order))


def _facts(node: Json) -> NodeFacts:
    metadata = mapping(node.get("metadata"), "metadata")
    spec = mapping(node.get("spec"), "spec")
    taints = (
        mapping(taint, "spec.taints") for taint in sequence(spec.get("taints"), "spec.taints")
    )
    labels = mapping(metadata.get("labels"), "metadata.labels")
    if not all(type(value) is str for value in labels.values()):
        # A file that somebody wrote: to the API server a label is a text.
        labels = {key: str(value) for key, value in labels.items()}
    return NodeFacts(
        name=text(metadata.get("name"), "metadata.name"),
        labels=labels,
        taints=tuple(taint for taint in taints if not _is_passing(taint)),
    )


def _is_passing(taint: Json) -> bool:
    return str(taint.get("key", "")).startswith(PASSING_TAINTS)


def _node_class(card: Card, nodes: list[NodeFacts]) -> NodeClass:
    members = tuple(sorted(nodes, key=lambda node: node.name))
    return NodeClass(
        name=card.name,
        product=card.product,
        count=len(members),
        gpus_per_node=card.num_gpus,
        gpu_resource=card.resource,
        device=card.device,
        sharing=card.sharing,
        nodes=tuple(node.name for node in members),
        labels=members[0].labels,
        taints=members[0].taints,
        unknown_reason=card.unknown_reason,
        members=members,
        divided_bytes=card.divided_bytes,
    )


def _order(node_class: NodeClass) -> tuple[int, str, str, int]:
    budget = node_class.device.budget_bytes if node_class.device else None
    first = node_class.nodes[0] if node_class.nodes else ""
    return (-(budget or 0), node_class.name, first, node_class.gpus_per_node)
