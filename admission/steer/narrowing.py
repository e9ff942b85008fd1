"""What a steered pod may still reach, and its verdict there.

UnitJudgement, pod spec as steered -> UnitJudgement
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from admission.capacity.constraints import PodRules, affinity_allows, rules_of, selects
from admission.decision import best_of, unit_verdict
from admission.values import ClassVerdict, Json, NodeFacts, UnitJudgement


def narrowed(judged: UnitJudgement, pod: Json) -> UnitJudgement:
    """Return *judged* as it is for *pod*: only what its labels leave reachable counts.

    Raises:
        RequestError: if the pod spec is malformed.
    """
    rules = rules_of(pod, f"{judged.unit.template}.spec".lstrip("."))
    known: dict[Hashable, bool] = {}
    kept = (_kept(found, rules, known) for found in judged.classes)
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


def _kept(found: ClassVerdict, rules: PodRules, known: dict[Hashable, bool]) -> ClassVerdict | None:
    """Return *found* with the nodes that *rules* leave; None if there are none."""
    node_class = found.node_class
    if not node_class.members:
        return found
    keys = rules.label_keys
    members = tuple(node for node in node_class.members if _allows(rules, keys, node, known))
    if not members:
        return None
    kept = replace(
        node_class,
        count=len(members),
        nodes=tuple(node.name for node in members),
        labels=members[0].labels,
        taints=members[0].taints,
        members=members,
    )
    return replace(found, node_class=kept)


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
