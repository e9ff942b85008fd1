"""How much of each kind of card is predicted to be in use, and waited for.

    PodViews, NodeClasses -> bytes by (product, state)

What a pod is predicted to hold is what its annotation says, for each of its GPUs. One that waits
is counted at the smallest card that holds it, which it is steered to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from admission.controller.pods import PodView
from admission.decision import budget_of
from admission.steer.notes import ENOUGH, ESTIMATE
from admission.values import NodeClass

NOWHERE = "none"
"""In place of a product: no card of the cluster holds it, or its node is none of ours."""
_MOST = 1 << 50


class State(StrEnum):
    """What a pod does with its cards: labels of `vramgate_class_predicted_bytes`."""

    WAITING = "waiting"
    RUNNING = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGpus:
    """The cards of one node."""

    node: str
    product: str
    gpus: int
    total_bytes: int | None
    """Of one of them."""


Predicted = Mapping[tuple[str, str], int]


def predicted_of(pods: Iterable[PodView], classes: Sequence[NodeClass]) -> Predicted:
    """Return the bytes that pods are predicted to hold, by product and state."""
    products = {node: each.product for each in classes for node in each.nodes}
    found: dict[tuple[str, str], int] = defaultdict(int)
    for each in classes:
        for state in State:
            found[each.product, state.value] += 0
    for pod in pods:
        nbytes = number(pod.annotations.get(ESTIMATE))
        if nbytes is None or pod.phase not in ("Pending", "Running"):
            continue
        if pod.node is not None:
            where, state = products.get(pod.node, NOWHERE), State.RUNNING
        else:
            where, state = _smallest(number(pod.annotations.get(ENOUGH)), classes), State.WAITING
        found[where, state.value] += nbytes * max(1, pod.gpus)
    return found


def nodes_of(classes: Iterable[NodeClass]) -> tuple[NodeGpus, ...]:
    """Return the cards of every node, by name."""
    found = {
        node: NodeGpus(
            node=node,
            product=each.product,
            gpus=each.gpus_per_node,
            total_bytes=each.device.total_bytes if each.device else None,
        )
        for each in classes
        for node in each.nodes
    }
    return tuple(found[name] for name in sorted(found))


def _smallest(enough: int | None, classes: Sequence[NodeClass]) -> str:
    held = [
        (budget, each.product)
        for each in classes
        if (budget := budget_of(each)) is not None and enough is not None and budget >= enough
    ]
    return min(held, default=(0, NOWHERE))[1]


def number(text: str | None) -> int | None:
    """Return a number of bytes from an annotation that anybody may have written."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 16:
        return None
    value = int(text)
    return value if value < _MOST else None
