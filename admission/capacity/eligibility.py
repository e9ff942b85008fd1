"""Which nodes of each class the pods of a unit may go to, and what closes the others.

Unit, NodeClasses -> Reach
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from admission.capacity.card_types import is_wanted
from admission.capacity.constraints import PodRules, affinity_allows, rules_of, selects, untolerated
from admission.capacity.declared import shared_classes
from admission.values import Json, NodeClass, NodeFacts, Unit
from admission.workloads.fields import mapping
from admission.workloads.resources import CLAIM, GPU

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Kueue's: the flavour it picks adds its tolerations when the workload starts."""


class Stage(IntEnum):
    """What is asked of a node, in this order: a later stage means the node came nearer."""

    RESOURCE = 0
    COUNT = 1
    NAME = 2
    SELECTOR = 3
    AFFINITY = 4
    TAINT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What closes a node to a pod."""

    stage: Stage
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Where the pods of a unit may go. Each class is narrowed to the nodes it is about."""

    reachable: tuple[NodeClass, ...]
    closed: tuple[NodeClass, ...]
    """Nodes with enough GPUs of the right resource that something else closes."""
    obstacle: Obstacle | None
    """What closes the nodes that came nearest; None if every node is open."""
    tainted: tuple[NodeClass, ...] = ()
    """Those of `closed` that a toleration alone would open, if the pods may still be given one."""


def reach_of(unit: Unit, classes: Sequence[NodeClass]) -> Reach:
    """Return where the pods of *unit* may go. A declared class is open to every pod.

    Raises:
        RequestError: if the pod spec is malformed.
    """
    rules = _rules(unit)
    reachable: list[NodeClass] = []
    closed: list[NodeClass] = []
    tainted: list[NodeClass] = []
    obstacles: list[Obstacle] = []
    for node_class in shared_classes(classes, unit.share):
        if not node_class.members:
            reachable.append(node_class)
            continue
        if obstacle := _class_obstacle(unit, node_class):
            obstacles.append(obstacle)
            continue
        met = _met(rules, unit.gpu_resource, node_class.members)
        reachable += _narrowed(node_class, [node for node, closed_by in met if not closed_by])
        closed += _narrowed(node_class, [node for node, closed_by in met if closed_by])
        tainted += _narrowed(node_class, [node for node, closed_by in met if _is_taint(closed_by)])
        obstacles += [closed_by for _, closed_by in met if closed_by]
    nearest = max(obstacles, key=lambda obstacle: obstacle.stage, default=None)
    return Reach(
        reachable=tuple(reachable),
        closed=tuple(closed),
        obstacle=nearest,
        tainted=tuple(tainted) if gets_tolerations(unit) else (),
    )


def gets_tolerations(unit: Unit) -> bool:
    """Return whether the pods may tolerate more, once they are made, than the object says.

    Between a template and its pods stand RuntimeClasses, Kueue's flavours and other webhooks. A
    Pod is what it is, unless one of the first two is still to come.
    """
    if unit.template or unit.pod.get("runtimeClassName"):
        return True
    labels = mapping(unit.pod_metadata.get("labels"), "metadata.labels")
    return QUEUE_LABEL in labels


def closing_taints(unit: Unit, node_class: NodeClass) -> tuple[str, ...]:
    """Return the taints of *node_class* (of its first node) that the pods do not tolerate."""
    found = untolerated(_rules(unit).tolerations, node_class.taints, resource=unit.gpu_resource)
    return tuple(taint_text(taint) for taint in found)


def _rules(unit: Unit) -> PodRules:
    return rules_of(unit.pod, f"{unit.template}.spec".lstrip("."))


def _is_taint(obstacle: Obstacle | None) -> bool:
    return obstacle is not None and obstacle.stage is Stage.TAINT


def _class_obstacle(unit: Unit, node_class: NodeClass) -> Obstacle | None:
    """Return what closes every node of *node_class* to the pods of *unit*, labels aside."""
    wanted = GPU if unit.gpu_resource == CLAIM else unit.gpu_resource
    if node_class.gpu_resource != wanted:
        return Obstacle(stage=Stage.RESOURCE, text=f"none offers {unit.gpu_resource}")
    if node_class.gpus_per_node < unit.pod_gpus:
        text = f"a pod asks for {unit.pod_gpus} GPUs and no node has as many"
        return Obstacle(stage=Stage.COUNT, text=text)
    if not is_wanted(unit, node_class):
        return Obstacle(stage=Stage.SELECTOR, text="its annotations want other types of card")
    return None


def _met(
    rules: PodRules, resource: str, members: Sequence[NodeFacts]
) -> list[tuple[NodeFacts, Obstacle | None]]:
    """Return what each member meets; members that look alike to the pod are asked once.

    A review walks every GPU node: at thousands of nodes the rules must not.
    """
    keys = rules.label_keys
    known: dict[Hashable, Obstacle | None] = {}
    met: list[tuple[NodeFacts, Obstacle | None]] = []
    for node in members:
        look: Hashable = (
            node.name if rules.asks_names else None,
            tuple([node.labels.get(key) for key in keys]),
            node.taint_key,
        )
        if look not in known:
            known[look] = _obstacle(rules, resource, node)
        met.append((node, known[look]))
    return met


def _obstacle(rules: PodRules, resource: str, node: NodeFacts) -> Obstacle | None:
    """Return the first thing that closes *node* to a pod with *rules* that asks for *resource*."""
    if rules.node_name and rules.node_name != node.name:
        return Obstacle(stage=Stage.NAME, text=f"nodeName {rules.node_name} is none of them")
    if not selects(rules.selector, node.labels):
        return Obstacle(stage=Stage.SELECTOR, text=f"nodeSelector {_pairs(rules.selector)}")
    if not affinity_allows(rules.terms, node):
        return Obstacle(stage=Stage.AFFINITY, text="the required nodeAffinity matches none")
    if taints := untolerated(rules.tolerations, node.taints, resource=resource):
        text = f"taint {taint_text(taints[0])} is not tolerated"
        return Obstacle(stage=Stage.TAINT, text=text)
    return None


def _narrowed(node_class: NodeClass, members: Sequence[NodeFacts]) -> tuple[NodeClass, ...]:
    """Return *node_class* with these members only; nothing if there are none."""
    if not members:
        return ()
    narrowed = replace(
        node_class,
        count=len(members),
        nodes=tuple(node.name for node in members),
        labels=members[0].labels,
        taints=members[0].taints,
        members=tuple(members),
    )
    return (narrowed,)


def _pairs(selector: Json) -> str:
    pairs = ", ".join(f"{key}={value}" for key, value in selector.items())
    return f"{pairs} matches none"


def taint_text(taint: Json) -> str:
    """Return a taint as kubectl shows it: `key=value:effect`."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"
