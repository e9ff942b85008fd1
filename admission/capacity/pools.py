"""Nodes that could still appear, and cards that an operator names.

    NodeCards -> ToldCards; NodePools, nodes -> (Card, NodeFacts) pairs

A pool has the labels that the settings give it and no others: an autoscaler that does not know a
label does not add a node for it (kubernetes/autoscaler#929, #3869).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from admission.capacity.cards import Card
from admission.capacity.told import ToldCard, ToldCards
from admission.values import Json, NodeFacts

if TYPE_CHECKING:
    from admission.node_settings import NodeCards, NodePool


def told_by(cards: Sequence[NodeCards]) -> ToldCards:
    """Return what the settings say of nodes by their labels."""
    return ToldCards(tuple(ToldCard(labels=told.selector, device=told.device()) for told in cards))


def pool_nodes(
    pools: Sequence[NodePool], nodes: Sequence[NodeFacts]
) -> Iterator[tuple[Card, NodeFacts]]:
    """Yield a card and a node for each node of *pools* that *nodes* do not have yet."""
    for pool in pools:
        card, taints = _card(pool), tuple(_taint(pool))
        labels = dict(pool.labels)
        for index in range(_live(pool, nodes), pool.count):
            name = f"{pool.name}-{index}"
            yield card, NodeFacts(name=name, labels=labels, taints=taints)


def _live(pool: NodePool, nodes: Sequence[NodeFacts]) -> int:
    """Return how many nodes carry the labels of *pool*; a pool without labels has none."""
    if not pool.labels:
        return 0
    wanted = pool.labels.items()
    found = sum(all(node.labels.get(key) == value for key, value in wanted) for node in nodes)
    return min(found, pool.count)


def _card(pool: NodePool) -> Card:
    device = pool.device()
    suffix = "/time-slicing" if pool.sharing == "time-slicing" else ""
    return Card(
        name=f"{device.name}{suffix}",
        product=device.name,
        resource=pool.resource,
        num_gpus=pool.gpus_per_node,
        sharing=pool.sharing,
        device=device,
    )


def _taint(pool: NodePool) -> Iterator[Json]:
    for taint in pool.taints:
        yield {"key": taint.key, "value": taint.value, "effect": taint.effect}
