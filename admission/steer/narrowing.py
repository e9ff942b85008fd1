"""What a steered pod may still reach, and its verdict there.

UnitJudgement, pod spec as steered -> UnitJudgement
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

from admission.capacity.constraints import PodRules, affinity_allows, rules_of, selects
from admission.decision import best_of, unit_verdict
from admission.steer.seen import Seen
from admission.values import ClassVerdict, Json, NodeClass, NodeFacts, UnitJudgement


def narrowed(judged: UnitJudgement, pod: Json, seen: Seen) -> UnitJudgement:
    """Return *judged* as it is for *pod*: only what its labels leave reachable counts.

    What the same rules left of a class before is taken from *seen*.

    Raises:
        RequestError: if the pod spec is malformed.
    """
    rules = rules_of(pod, f"{judged.unit.template}.spec".lstrip("."))
    kept = (_kept(found, rules, seen) for found in judged.classes)
    classes = tuple(found for found in kept if found is not None)
    verdict, reason = unit_verdict(classes)
    best = best_of(classes)
    return replace(
        judged,
        unit=replace(judged.unit, pod=pod),
        verdict=verdict,
        classes=classes,
        estimate=best.estimate if best else None,
        reason=reason,
        findings=(),
    )


def _kept(found: ClassVerdict, rules: PodRules, seen: Seen) -> ClassVerdict | None:
    """Return *found* with the nodes that *rules* leave; None if there are none."""
    node_class = found.node_class
    if not node_class.members:
        return found
    selector = tuple((key, str(value), type(value)) for key, value in rules.selector.items())
    asked = (rules.node_name, selector, rules.terms)
    kept = seen.of(node_class, asked, partial(_left_of, node_class, rules))
    return replace(found, node_class=kept) if kept is not None else None


def _left_of(node_class: NodeClass, rules: PodRules) -> NodeClass | None:
    """Return *node_class* with the nodes that *rules* leave, itself if that is all of them."""
    keys = rules.label_keys
    known: dict[Hashable, bool] = {}
    members = tuple(node for node in node_class.members if _allows(rules, keys, node, known))
    if len(members) == len(node_class.members):
        return node_class
    if not members:
        return None
    return replace(
        node_class,
        count=len(members),
        nodes=tuple(node.name for node in members),
        labels=members[0].labels,
        taints=members[0].taints,
        members=members,
    )


def _allows(
    rules: PodRules, keys: Sequence[str], node: NodeFacts, known: dict[Hashable, bool]
) -> bool:
    """Return whether *rules* allow *node*; nodes that look alike to them are asked once."""
    look: Hashable = (
        node.name if rules.asks_names else None,
        tuple([node.labels.get(key) for key in keys]),
    )
    if look not in known:
        known[look] = selects(rules.selector, node.labels) and affinity_allows(rules.terms, node)
    return known[look]
