"""Which nodes of each class the pods of a job may go to, and all that closes the others.

    Workload, Views, NodeClasses, Estimator -> WorkloadPlaces

The verdict follows `capacity.eligibility`; here its reasons are told node by node, and classes that
are closed are estimated too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from admission.capacity.constraints import (
    PodRules,
    Requirement,
    Term,
    affinity_allows,
    rules_of,
    selects,
    untolerated,
)
from admission.capacity.declared import shared_classes
from admission.capacity.eligibility import Obstacle, Stage, gets_tolerations, reach_of, taint_text
from admission.codes import Verdict
from admission.decision import budget_of
from admission.judge.asking import Answer, Question, answer_of, class_verdicts, devices_of
from admission.judge.deadline import Deadline
from admission.judge.views import Views
from admission.values import (
    ClassVerdict,
    Finding,
    NodeClass,
    NodeFacts,
    Reading,
    Unit,
    Workload,
)
from estimator.deferred import Deferred
from estimator.workers.api import Estimator

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = Deferred("asyncio")

_STILL = "its pods may still be given the toleration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """Nodes that are closed for the same reasons."""

    nodes: tuple[str, ...]
    why: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """One class and the pods of one unit."""

    node_class: NodeClass
    """With the budget that the unit declares of it, if that is less."""
    num_open: int
    closed: tuple[Closed, ...]
    judged: ClassVerdict | None
    """What would be said of the class if the pods may go there; None without an estimate."""

    def figures(self) -> dict[str, Any]:
        """Return budget, needs and verdict as JSON types, as far as they are known."""
        budget = budget_of(self.node_class)
        found: dict[str, Any] = {} if budget is None else {"budgetBytes": budget}
        if self.node_class.declared is not None:
            found["declared"] = self.node_class.declared.share.text
        if budget is None:
            found["unknown"] = self.node_class.unknown_reason or "its memory is not known"
        if self.judged is None:
            return found
        if self.judged.estimate is not None:
            found["least"] = self.judged.estimate.least.device_bytes
            found["enough"] = self.judged.estimate.enough.device_bytes
            found["most"] = self.judged.estimate.most.device_bytes
        return {**found, "verdict": str(self.judged.verdict)}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPlaces:
    """The classes and one unit."""

    unit: Unit
    openings: tuple[Opening, ...]
    findings: tuple[Finding, ...] = ()
    """Why there is no estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPlaces:
    """The classes and one workload."""

    workload: Workload
    units: tuple[UnitPlaces, ...]


async def places_of(
    workload: Workload, views: Views, *, classes: Sequence[NodeClass], estimator: Estimator
) -> WorkloadPlaces:
    """Return where the pods of *workload* may go, with estimates where its job was understood."""
    units = await asyncio.gather(
        *(_places(view.unit, view.reading, classes, estimator) for view in views)
    )
    return WorkloadPlaces(workload=workload, units=tuple(units))


async def _places(
    unit: Unit, reading: Reading, classes: Sequence[NodeClass], estimator: Estimator
) -> UnitPlaces:
    had = shared_classes(classes, unit.share)
    devices = devices_of(had)
    answer = Answer(estimates={}, findings=reading.unknowns)
    if reading.job is not None and devices:
        answer = await answer_of(
            Question(job=reading.job, devices=devices), estimator, Deadline(None)
        )
    verdicts = class_verdicts(had, answer.estimates)
    openings = (
        _opening(unit, node_class, shared, judged)
        for node_class, shared, judged in zip(classes, had, verdicts, strict=True)
    )
    return UnitPlaces(unit=unit, openings=tuple(openings), findings=answer.findings)


def _opening(unit: Unit, node_class: NodeClass, shared: NodeClass, judged: ClassVerdict) -> Opening:
    closed, num_open = closed_nodes(unit, node_class)
    is_judged = judged.estimate is not None or (
        judged.verdict is Verdict.UNKNOWN and budget_of(shared) is None
    )
    return Opening(
        node_class=shared,
        num_open=num_open,
        closed=closed,
        judged=judged if is_judged else None,
    )


def closed_nodes(unit: Unit, node_class: NodeClass) -> tuple[tuple[Closed, ...], int]:
    """Return the nodes of *node_class* that are closed to *unit*, by reasons; how many are open.

    Raises:
        RequestError: if the pod spec is malformed.
    """
    reach = reach_of(unit, (node_class,))
    num_open = sum(found.count for found in reach.reachable)
    if reach.obstacle is None:
        return (), num_open
    if not reach.closed:
        whole = Closed(
            nodes=node_class.nodes, why=[_class_reason(unit, node_class, reach.obstacle)]
        )
        return (whole,), num_open
    rules = rules_of(unit.pod, f"{unit.template}.spec".lstrip("."))
    is_still = gets_tolerations(unit)
    alike: dict[tuple[str, ...], list[str]] = {}
    for found in reach.closed:
        for node in found.members:
            why = tuple(_reasons(rules, unit.gpu_resource, node, is_still=is_still))
            alike.setdefault(why, []).append(node.name)
    return (
        tuple(Closed(nodes=tuple(names), why=list(why)) for why, names in alike.items()),
        num_open,
    )


def _class_reason(unit: Unit, node_class: NodeClass, obstacle: Obstacle) -> str:
    """Return what closes all of a class, labels aside."""
    match obstacle.stage:
        case Stage.RESOURCE:
            return f"offers {node_class.gpu_resource}, and a pod asks for {unit.gpu_resource}"
        case Stage.COUNT:
            return f"has {node_class.gpus_per_node} GPUs a node, and a pod asks for {unit.pod_gpus}"
        case _:
            return obstacle.text


def _reasons(rules: PodRules, resource: str, node: NodeFacts, *, is_still: bool) -> Iterable[str]:
    """Yield everything that keeps a pod with *rules* from *node*."""
    is_tainted_only = True
    if rules.node_name and rules.node_name != node.name:
        is_tainted_only = False
        yield f"nodeName is {rules.node_name}"
    for key, value in rules.selector.items():
        if not selects({key: value}, node.labels):
            is_tainted_only = False
            yield f"nodeSelector {key}={value}: {_label(key, node.labels)}"
    if not affinity_allows(rules.terms, node):
        is_tainted_only = False
        yield from _affinity(rules.terms or (), node)
    for taint in untolerated(rules.tolerations, node.taints, resource=resource):
        text = f"taint {taint_text(taint)} is not tolerated"
        yield f"{text} ({_STILL})" if is_still and is_tainted_only else text


def _affinity(terms: Sequence[Term], node: NodeFacts) -> Iterable[str]:
    """Yield for each alternative of the required affinity what of it does not hold."""
    if not terms:
        yield "required nodeAffinity has no term, which matches nothing"
    for index, term in enumerate(terms):
        where = (
            f"required nodeAffinity, term {index + 1}"
            if len(terms) > 1
            else ("required nodeAffinity")
        )
        failing = [
            *(
                f"{_words(each)}: {_label(each.key, node.labels)}"
                for each in term.labels
                if not affinity_allows((Term(labels=(each,), fields=()),), node)
            ),
            *(
                f"{_words(each)}: it is {node.name}"
                for each in term.fields
                if not affinity_allows((Term(labels=(), fields=(each,)),), node)
            ),
        ]
        yield f"{where}: {'; '.join(failing) or 'an empty term matches nothing'}"


def _words(requirement: Requirement) -> str:
    values = ", ".join(requirement.values)
    shown = f" {values}" if len(requirement.values) == 1 else f" ({values})" if values else ""
    return f"{requirement.key} {requirement.operator}{shown}"


def _label(key: str, labels: Mapping[str, Any]) -> str:
    return f"the node has {labels[key]}" if key in labels else "the node has no such label"
