"""What the series about cards and workloads show: how many, and which are left out.

    node classes, judgements -> rows with labels and bytes

Pure. Whatever comes from a cluster or a manifest is bounded here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from admission.decision import best_of, budget_of
from admission.judge.conclusion import deciding_unit
from admission.metric_labels import OTHER
from admission.values import Judgement, NodeClass, UnitJudgement

MOST_CLASSES = 32
"""Card classes with series of their own; those with the fewest GPUs are `other` together."""
OTHERS = (OTHER, OTHER, OTHER)
BOUNDS = ("least", "enough", "peak", "most", "usable")
"""Figures of a workload: those of its estimate, and what it can get on its card."""

ClassLabels = tuple[str, str, str]
"""product, total memory in MiB (as the node label has it), sharing"""
WorkloadLabels = tuple[str, str, str]
"""namespace, kind, name"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """One class as it is shown."""

    nodes: int
    gpus: int
    """GPUs, slices or shares that pods can ask for."""
    usable: int | None
    """Bytes one pod can get on one of them; None: not known."""

    def with_another(self, other: ClassRow) -> ClassRow:
        """Return both as one: what one pod can get is then the smaller figure."""
        known = [bytes_ for bytes_ in (self.usable, other.usable) if bytes_ is not None]
        return ClassRow(
            nodes=self.nodes + other.nodes,
            gpus=self.gpus + other.gpus,
            usable=min(known, default=None),
        )


def class_rows(classes: Iterable[NodeClass]) -> Mapping[ClassLabels, ClassRow]:
    """Return the rows of *classes*, those with equal labels as one, `MOST_CLASSES` of them."""
    rows: dict[ClassLabels, ClassRow] = {}
    for found in classes:
        _add(rows, class_labels(found), _row(found))
    by_size = sorted(rows, key=lambda labels: rows[labels].gpus, reverse=True)
    for labels in by_size[MOST_CLASSES:]:
        _add(rows, OTHERS, rows.pop(labels))
    return rows


def class_labels(found: NodeClass) -> ClassLabels:
    """Return product, total memory in MiB (as the node label has it) and sharing."""
    total = found.device.total_bytes if found.device else None
    memory = "unknown" if total is None else str(total >> 20)
    return (found.product or "unknown", memory, found.sharing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What a job takes once it is admitted, whatever its name."""

    namespace: str
    kind: str
    nbytes: Mapping[ClassLabels, int]
    """In all, by the class that its verdict rests on."""
    bounds: Mapping[str, int]
    """Of one GPU of the unit that decides."""


def admission_of(judgement: Judgement) -> Admission:
    """Return what *judgement*'s job takes once it is admitted."""
    unit = deciding_unit(judgement)
    return Admission(
        namespace=judgement.workload.ref.namespace,
        kind=judgement.workload.ref.kind,
        nbytes=admitted_bytes(judgement),
        bounds=bounds_of(unit) if unit else {},
    )


def admitted_bytes(judgement: Judgement) -> Mapping[ClassLabels, int]:
    """Return what *judgement*'s job will take in all, by the class that its verdict rests on.

    `peak` of one GPU times GPUs and replicas; units without an estimate add nothing.
    """
    found: dict[ClassLabels, int] = {}
    for unit in judgement.units:
        best = best_of(unit.classes)
        if best is None or unit.estimate is None:
            continue
        num_gpus = unit.unit.gpus * unit.unit.replicas
        labels = class_labels(best.node_class)
        found[labels] = found.get(labels, 0) + unit.estimate.peak.device_bytes * num_gpus
    return found


def bounds_of(unit: UnitJudgement) -> Mapping[str, int]:
    """Return the figures of one GPU of *unit*, and what it can get on the best card it may use."""
    estimate = unit.estimate
    if estimate is None:
        return {}
    best = best_of(unit.classes)
    usable = budget_of(best.node_class) if best else None
    return {
        **({} if usable is None else {"usable": usable}),
        "least": estimate.least.device_bytes,
        "enough": estimate.enough.device_bytes,
        "peak": estimate.peak.device_bytes,
        "most": estimate.most.device_bytes,
    }


class Latest:
    """The workloads that were admitted last."""

    def __init__(self) -> None:
        self._most = 0
        self._kept: OrderedDict[WorkloadLabels, None] = OrderedDict()

    @property
    def keeps_any(self) -> bool:
        """Return whether a workload that is added stays."""
        return self._most > 0

    def keep(self, most: int) -> tuple[WorkloadLabels, ...]:
        """Keep at most *most* from now on; return those that are forgotten."""
        self._most = most
        return self._forgotten()

    def add(self, labels: WorkloadLabels) -> tuple[WorkloadLabels, ...]:
        """Take *labels* as the newest; return those that are forgotten, itself with *most* 0."""
        self._kept.pop(labels, None)
        self._kept[labels] = None
        return self._forgotten()

    def _forgotten(self) -> tuple[WorkloadLabels, ...]:
        num_over = max(0, len(self._kept) - self._most)
        return tuple(self._kept.popitem(last=False)[0] for _ in range(num_over))


def _row(found: NodeClass) -> ClassRow:
    return ClassRow(
        nodes=found.count,
        gpus=found.count * found.gpus_per_node,
        usable=found.device.budget_bytes if found.device else None,
    )


def _add(rows: dict[ClassLabels, ClassRow], labels: ClassLabels, row: ClassRow) -> None:
    present = rows.get(labels)
    rows[labels] = row if present is None else present.with_another(row)
