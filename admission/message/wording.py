"""A verdict in words: what it needs, what the cards have, what takes the memory, what would fit.

    UnitJudgement -> Wording

Needs are rounded up and capacities down. Names are as people wrote them: `message.py` cleans them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from admission.capacity.eligibility import closing_taints
from admission.codes import NOT_YET, ReasonCode, Verdict
from admission.decision import Cause, best_of, budget_of
from admission.message.findings import told_reason
from admission.message.hints import fitting_changes
from admission.message.naming import (
    card_text,
    choosing_text,
    fitting_text,
    largest_text,
    smaller_text,
    smallest_class,
)
from admission.message.shares import as_declared, larger_declaration
from admission.values import ClassVerdict, Finding, UnitJudgement
from estimator.units import gib_down, gib_up

if TYPE_CHECKING:
    from estimator.result import Estimate

_PARTS = {
    "parameters": "parameters are",
    "gradients": "gradients are",
    "optimizer": "optimizer states are",
    "activations": "activations are",
    "inputs": "inputs are",
    "temporary": "temporary tensors are",
    "workspace": "kernel workspace is",
    "communication": "communication buffers are",
    "context": "the CUDA context is",
    "libraries": "libraries are",
    "other": "other declared memory is",
}
"""`cached` is left out: it is elastic, no part of the need."""

_SKIPPED = {
    ReasonCode.KIND: "this kind of object is not read yet",
    ReasonCode.NO_GPU: "asks for no GPU",
    ReasonCode.NO_TRAINING: "is no training job",
    ReasonCode.NO_JOB: "holds no job: what runs on it is submitted later, past admission",
    ReasonCode.DOCUMENT: "its pods are described by another object, which is not read",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The parts of a message, lower case, without full stops."""

    need: str
    why: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    """Each completes `it fits …`: `with batch size 160`."""
    advice: str | None = None
    """What to do next where no change was estimated."""


def wording_of(judged: UnitJudgement) -> Wording:
    """Return what is said about one unit."""
    if judged.verdict is Verdict.SKIPPED:
        return Wording(need=skip_text(judged.reason))
    if judged.reason == Cause.TAINTED_CARD:
        return _tainted_card(judged)
    best = best_of(judged.classes)
    if judged.verdict is Verdict.UNKNOWN or best is None or best.estimate is None:
        return _unknown(judged)
    if judged.verdict is Verdict.OOM:
        return _oom(judged, best, best.estimate)
    if judged.verdict is Verdict.TIGHT:
        return _tight(judged, best, best.estimate)
    return _fits(judged)


def problem_wording(finding: Finding) -> Wording:
    """Return what is said where the pods themselves could not be read."""
    need = f"cannot tell how much GPU memory it needs: {finding.path}: {told_reason(finding)}"
    return Wording(need=need, advice=finding.hint)


def skip_text(reason: str) -> str:
    """Return why nothing is judged."""
    known = {str(code): text for code, text in _SKIPPED.items()}
    return f"not judged: {known.get(reason, reason or 'it has no GPU container')}"


def _oom(judged: UnitJudgement, best: ClassVerdict, estimate: Estimate) -> Wording:
    changes, advice = fitting_changes(judged)
    if best.reason == Cause.OWN_LIMIT and estimate.allocator_limit_bytes is not None:
        need = (
            f"needs at least {gib_up(estimate.least.reserved_bytes)} in its framework's memory "
            f"pool, which the job itself limits to {gib_down(estimate.allocator_limit_bytes)}"
        )
    else:
        need = (
            f"needs at least {gib_up(estimate.least.device_bytes)} on one GPU; "
            f"{largest_text(best.node_class, judged.classes)}"
        )
    if larger := larger_declaration(best, estimate):
        changes, advice = (larger, *changes), None
    return Wording(need=need, why=_largest_part(estimate), changes=changes, advice=advice)


def _tight(judged: UnitJudgement, best: ClassVerdict, estimate: Estimate) -> Wording:
    too_small = smallest_class(judged.classes, Verdict.OOM, Verdict.TIGHT)
    match judged.reason:
        case Cause.DECLARED:
            return _floor(judged, best, estimate)
        case Cause.SMALL_CARD if too_small is not None:
            return _small_card(judged, too_small)
        case Cause.SHARED_CARD:
            return _shared_card(judged)
        case Cause.UNKNOWN_CARD:
            return _unknown_card(judged)
        case _:
            need = (
                f"may run out of GPU memory: needs {gib_up(estimate.least.device_bytes)} to "
                f"{gib_up(estimate.enough.device_bytes)} on one GPU; "
                f"{largest_text(best.node_class, judged.classes)}"
            )
            small = smallest_class(judged.classes, Verdict.OOM)
            also = (f"{smaller_text(small, judged.classes)}, too little",) if small else ()
            changes, advice = fitting_changes(judged) if judged.floor else ((), None)
            why = (*also, *_largest_part(estimate))
            return Wording(need=need, why=why, changes=changes, advice=advice)


def _floor(judged: UnitJudgement, best: ClassVerdict, estimate: Estimate) -> Wording:
    """Return what is said of a claim that may be given more than it asks for."""
    larger = larger_declaration(best, estimate)
    return Wording(
        need=(
            f"may run out of GPU memory: needs at least {gib_up(estimate.least.device_bytes)} on "
            f"one GPU; {largest_text(best.node_class, judged.classes)}, and a device that is "
            "shared may give it no more"
        ),
        why=_largest_part(estimate),
        changes=(larger,) if larger else (),
    )


def _small_card(judged: UnitJudgement, small: ClassVerdict) -> Wording:
    needs = ""
    if small.estimate is not None:
        needs = (
            f"at least {gib_up(small.estimate.least.device_bytes)}"
            if small.verdict is Verdict.OOM
            else f"up to {gib_up(small.estimate.enough.device_bytes)}"
        )
    return Wording(
        need=(
            f"may land on a card that is too small: {smaller_text(small, judged.classes)}, and it "
            f"needs {needs} there"
        ),
        why=(f"it fits {fitting_text(judged.classes)}",),
        advice=choosing_text(judged.classes),
    )


def _shared_card(judged: UnitJudgement) -> Wording:
    shared = [found for found in judged.classes if found.reason == Cause.SHARED_CARD]
    small = min(shared, key=lambda found: budget_of(found.node_class) or 0)
    enough = small.estimate.enough.device_bytes if small.estimate else 0
    return Wording(
        need=(
            f"may run out of GPU memory: {card_text(small.node_class, judged.classes)} shares "
            f"{gib_down(budget_of(small.node_class) or 0)} between pods by time-slicing, and it "
            f"needs up to {gib_up(enough)} of them"
        ),
        why=("time-slicing keeps no memory apart, so what the neighbours take is not known",),
    )


def _unknown_card(judged: UnitJudgement) -> Wording:
    unknown = next(found for found in judged.classes if found.verdict is Verdict.UNKNOWN)
    return Wording(
        need=(
            f"fits {fitting_text(judged.classes)}, but may land on "
            f"{card_text(unknown.node_class, judged.classes)}, whose memory is not known: "
            f"{unknown.reason}"
        ),
        advice=choosing_text(judged.classes),
    )


def _tainted_card(judged: UnitJudgement) -> Wording:
    """Return the smallest card that holds it, where only a taint keeps its pods away today."""
    best = best_of(judged.elsewhere)
    assert best is not None, "a class behind a taint was the reason"
    holding = [found for found in judged.elsewhere if found.verdict is best.verdict]
    where = min(holding, key=lambda found: budget_of(found.node_class) or 0)
    taints = closing_taints(judged.unit, where.node_class)
    condition = f"if the pod tolerates {'taint' if len(taints) == 1 else 'taints'} "
    condition += " and ".join(taints)
    fits = "fits" if where.verdict is Verdict.FITS else "may fit"
    card = card_text(where.node_class, judged.elsewhere)
    advice = "add the toleration, unless the cluster adds it to the pod (RuntimeClass, Kueue)"
    open_best = best_of(judged.classes)
    if open_best is None or open_best.estimate is None:
        return Wording(
            need=f"{fits} {card}, {condition}; no other GPU node is open to it", advice=advice
        )
    return Wording(
        need=(
            f"needs at least {gib_up(open_best.estimate.least.device_bytes)} on one GPU; "
            f"{largest_text(open_best.node_class, judged.classes, but_for_taints=True)}"
        ),
        why=(f"it {fits} {card}, {condition}",),
        advice=advice,
    )


def _fits(judged: UnitJudgement) -> Wording:
    small = min(judged.classes, key=lambda found: budget_of(found.node_class) or 0)
    enough = small.estimate.enough.device_bytes if small.estimate else 0
    budget = gib_down(budget_of(small.node_class) or 0)
    card = card_text(small.node_class, judged.classes)
    if small.node_class.members:
        card = f"the smallest card this job may use ({card})"
    declared = as_declared(small.node_class)
    need = f"fits: {gib_up(enough)} is enough on {card}, which gives it {budget}{declared}"
    return Wording(need=need)


def _unknown(judged: UnitJudgement) -> Wording:
    if not judged.findings:
        return Wording(need="cannot tell how much GPU memory it needs")
    first, *others = judged.findings
    if first.code in NOT_YET:
        need = told_reason(first)
    elif first.code == ReasonCode.NO_CLASS:
        need = f"cannot tell whether it fits: {first.reason}"
    else:
        need = f"cannot tell how much GPU memory it needs: {_found(first, judged)}"
    more = (f"{len(others)} more things could not be read",) if len(others) > 1 else ()
    if len(others) == 1:
        also = others[0].reason if others[0].path == first.path else _found(others[0], judged)
        more = (f"also: {also}",)
    return Wording(need=need, why=more, advice=first.hint)


def _found(finding: Finding, judged: UnitJudgement) -> str:
    source = judged.reading.sources.get(finding.path)
    where = f"{finding.path} (from {source})" if source else finding.path
    reason = told_reason(finding)
    return f"{where}: {reason}" if where else reason


def _largest_part(estimate: Estimate) -> tuple[str, ...]:
    """Return what takes most of the expected peak: the parts of the least need are not known."""
    sizes = {name: getattr(estimate.breakdown, name) for name in _PARTS}
    name = max(sizes, key=lambda part: sizes[part])
    if not sizes[name]:
        return ()
    is_most = 2 * sizes[name] >= estimate.peak.device_bytes
    share = "most of it" if is_most else "the largest part"
    return (f"{_PARTS[name]} {share}, {gib_up(sizes[name])} at the expected peak",)
