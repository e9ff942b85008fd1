"""A cluster with four cards, a workload with a known need, and the patch it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from admission.capacity.classes import classes_of
from admission.capacity.eligibility import reach_of
from admission.codes import Operation, Steer, Verdict
from admission.decision import best_of, class_verdict, unit_verdict, worst_verdict
from admission.steer.checking import checked
from admission.steer.operations import operations
from admission.steer.permission import Permission, permission_of
from admission.steer.permission import Place as Where
from admission.steer.plan import Steering, TemplatePlan, plans_of, steered_units
from admission.steer.writing import containers_of, unsteered, written
from admission.values import NodeClass, Reading, Unit, UnitJudgement
from admission.workloads import read_workload
from estimator.units import MIB
from tests.builders import GPU, estimate, gpu_labels, job_spec, node

T4 = ("Tesla-T4", 15360, (7, 5))
A10 = ("NVIDIA-A10", 23028, (8, 6))
A100 = ("NVIDIA-A100-SXM4-40GB", 40960, (8, 0))
A100_80 = ("NVIDIA-A100-SXM4-80GB", 81920, (8, 0))
A10_RESERVATION = 541
"""MiB that the driver keeps of an A10."""
MEMORY = f"{GPU}.memory"
PRODUCT = f"{GPU}.product"

Cards = Sequence[tuple[str, int, tuple[int, int]]]


def nodes(cards: Cards = (T4, A10, A100, A100_80), *, has_memory: bool = True) -> list[Any]:
    """Return one node of each of *cards*."""
    found = []
    for product, memory, compute in cards:
        labels = gpu_labels(product=product, memory=str(memory), compute=compute)
        if not has_memory:
            del labels[MEMORY]
        found.append(node(product.lower(), labels=labels))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What steering made of an object."""

    patch: list[dict[str, Any]]
    patched: dict[str, Any]
    plans: tuple[TemplatePlan, ...]
    units: tuple[UnitJudgement, ...]
    verdict: Verdict

    def placed(self) -> list[dict[str, Any]]:
        """Return the operations on affinity and nodeSelector."""
        return [
            step for step in self.patch if "/affinity" in step["path"] or "/nodeS" in step["path"]
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """How jobs are judged and steered here."""

    nodes: Sequence[Any] = ()
    need_mib: int = 20_000
    """`enough`, on every card."""
    least_mib: int | None = None
    needs: Mapping[str, int] | None = None
    """`enough` by role, in MiB."""
    steer: Steer = Steer.REQUIRED
    verdict: Verdict | None = None
    """Instead of the one that the cards make."""
    termination_messages: bool = True

    @property
    def classes(self) -> tuple[NodeClass, ...]:
        """Return the cluster's."""
        return classes_of(self.nodes or nodes())

    def steered(
        self,
        obj: Mapping[str, Any],
        *,
        operation: Operation = Operation.CREATE,
        stored: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """Return what `/mutate` makes of *obj*."""
        received = deepcopy(dict(obj))
        bare = unsteered(received)
        workload = read_workload(bare)
        permission = permission_of(workload, operation, stored=stored)
        if permission.place is Where.NOWHERE:
            workload = read_workload(received)
        units = tuple(self._judged(unit) for unit in workload.units)
        steering = Steering(
            steer=self.steer,
            permission=permission,
            classes=self.classes,
            is_update=operation is Operation.UPDATE,
        )
        plans = plans_of(received, workload, units, steering)
        after = steered_units(units, plans)
        verdict = worst_verdict(judged.verdict for judged in after)
        patched = received
        if permission != Permission():
            wanted = written(
                received,
                plans,
                after,
                verdict=verdict,
                permission=permission,
                termination_messages=self.termination_messages,
            )
            assert received == obj, "the object under review is never written to"
            patched = dict(wanted)
        patch = list(operations(received, patched))
        applied = checked(
            received,
            patch,
            templates=tuple(plan.place for plan in plans),
            containers=containers_of(after),
        )
        assert applied == patched
        return Outcome(
            patch=patch, patched=deepcopy(patched), plans=plans, units=after, verdict=verdict
        )

    def _judged(self, unit: Unit) -> UnitJudgement:
        need = (self.needs or {}).get(unit.role, self.need_mib) * MIB
        least = need if self.least_mib is None else self.least_mib * MIB
        reach = reach_of(unit, self.classes)
        verdicts = tuple(
            class_verdict(found, estimate(least=least, enough=need, card=found.device))
            for found in reach.reachable
        )
        verdict, reason = unit_verdict(verdicts)
        best = best_of(verdicts)
        reading = Reading(spec=job_spec())
        return UnitJudgement(
            unit=unit,
            reading=reading,
            verdict=self.verdict or verdict,
            classes=verdicts,
            estimate=best.estimate if best else None,
            reason=reason,
        )


def gt(mib: int) -> dict[str, Any]:
    """Return the expression for cards of more than *mib*."""
    return {"key": MEMORY, "operator": "Gt", "values": [str(mib)]}


def lt(mib: int) -> dict[str, Any]:
    """Return the expression for cards of less than *mib*."""
    return {"key": MEMORY, "operator": "Lt", "values": [str(mib)]}


def preferred(*tiers: tuple[int, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return preferred terms of weight and expressions."""
    return [
        {"weight": weight, "preference": {"matchExpressions": expressions}}
        for weight, expressions in tiers
    ]


def node_affinity(
    required: Sequence[dict[str, Any]], tiers: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return a node affinity of one alternative and *tiers*."""
    found: dict[str, Any] = {}
    if required:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [{"matchExpressions": list(required)}]
        }
    if tiers:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = list(tiers)
    return {"nodeAffinity": found}
