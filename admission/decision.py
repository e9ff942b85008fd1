"""What a need means for the cards a job may use, and what may be done about it.

    NodeClass, Estimate -> ClassVerdict; ClassVerdicts -> Verdict; Verdict, Policy -> Action

Pure. A job is refused on `least` and passes on `enough`; nothing is refused without a known card.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from admission.codes import ORDER, Action, Mode, Operation, ReasonCode, Verdict
from admission.exemption import Exemption
from admission.values import ClassVerdict, NodeClass, Workload

if TYPE_CHECKING:
    from estimator.result import Estimate

OBSERVED_KINDS = frozenset(
    {
        "DaemonSet",
        "Deployment",
        "InferenceService",
        "Notebook",
        "RayCluster",
        "RayService",
        "ReplicaSet",
        "StatefulSet",
    }
)
"""Kinds that are counted, and never warned about or denied, even where nothing of them was read."""


class Cause(StrEnum):
    """Why a unit got its verdict, where it was judged against cards."""

    TOO_LARGE = "too-large"
    OWN_LIMIT = "own-limit"
    """The job's own allocator limit is below its need, whatever the card."""
    DECLARED = "declared"
    """The card would hold it, and what it declares of the card does not."""
    LITTLE_ROOM = "little-room"
    SMALL_CARD = "small-card"
    """It fits on the best card and not on another it may also use."""
    SHARED_CARD = "shared-card"
    """It fits if its neighbours on a time-sliced card leave it enough."""
    UNKNOWN_CARD = "unknown-card"
    """It fits on the known cards, and may use one whose memory is not known."""
    TAINTED_CARD = "tainted-card"
    """Only a card behind a taint holds it, and its pods may still be given the toleration."""
    FITS = "fits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The request a verdict answers. A dry run is answered like any other."""

    operation: Operation = Operation.CREATE
    was_oom: bool = False
    """The object as stored was `oom` already."""
    resumes: bool = False
    """The update only takes a suspended workload up again, or says where its queue sends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How far a verdict goes, in the namespace of the workload."""

    mode: Mode = Mode.WARN
    on_unknown: Action = Action.WARN
    on_late: Action = Action.WARN
    """`allow` or `warn`; a late answer never denies."""
    exemption: Exemption | None = None
    """Valid now: what would be denied is warned about instead."""
    remark: str = ""
    """Why an exemption that somebody wrote down does not count."""

    def strict(self) -> Policy:
        """Return the same policy with mode `enforce` and no exemption."""
        return replace(self, mode=Mode.ENFORCE, exemption=None)


def class_verdict(node_class: NodeClass, estimate: Estimate | None) -> ClassVerdict:
    """Return the verdict of one unit on one class of nodes."""
    budget = budget_of(node_class)
    if budget is None:
        reason = node_class.unknown_reason or "its memory is not known"
        return ClassVerdict(
            node_class=node_class, verdict=Verdict.UNKNOWN, estimate=None, reason=reason
        )
    if estimate is None:
        return ClassVerdict(node_class=node_class, verdict=Verdict.UNKNOWN, estimate=None)
    verdict, cause = _compare(node_class, estimate, budget)
    return ClassVerdict(node_class=node_class, verdict=verdict, estimate=estimate, reason=cause)


def unit_verdict(
    classes: Sequence[ClassVerdict], *, tainted: Sequence[ClassVerdict] = ()
) -> tuple[Verdict, str]:
    """Return the verdict over the classes a pod may go to, and its cause in one word.

    `oom` needs every class to be known and too small. A class of unknown memory beside one that
    fits makes the unit `tight`, as a class that is too small does. *tainted* are classes that a
    toleration would open which the pods may still be given: they are asked only if no other class
    holds the job, and one that does, or is not known, is no reason to say `oom`.
    """
    verdict, reason = _reached(classes)
    if verdict is not Verdict.OOM and classes:
        return verdict, reason
    best = best_of(tainted)
    if best is not None and best.verdict is not Verdict.OOM:
        return Verdict.TIGHT, Cause.TAINTED_CARD
    if any(found.verdict is Verdict.UNKNOWN for found in tainted):
        return Verdict.UNKNOWN, ReasonCode.NO_CLASS
    return verdict, reason


def _reached(classes: Sequence[ClassVerdict]) -> tuple[Verdict, str]:
    """Return the verdict over the classes a pod may go to as it is."""
    known = [found for found in classes if found.verdict is not Verdict.UNKNOWN]
    best = best_of(known)
    if best is None or (best.verdict is Verdict.OOM and len(known) < len(classes)):
        return Verdict.UNKNOWN, ReasonCode.NO_CLASS
    if best.verdict is not Verdict.FITS:
        return best.verdict, best.reason
    worst = min(known, key=lambda found: ORDER.index(found.verdict))
    if worst.verdict is not Verdict.FITS:
        return Verdict.TIGHT, _cause_of_worse(worst)
    if len(known) < len(classes):
        return Verdict.TIGHT, Cause.UNKNOWN_CARD
    return Verdict.FITS, Cause.FITS


def best_of(classes: Iterable[ClassVerdict]) -> ClassVerdict | None:
    """Return the class that holds the job best: by verdict, then by budget."""
    known = [found for found in classes if found.verdict is not Verdict.UNKNOWN]
    return max(
        known,
        key=lambda found: (ORDER.index(found.verdict), budget_of(found.node_class) or 0),
        default=None,
    )


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return a workload's verdict: the worst of its units, `skipped` if it has none."""
    return min(verdicts, key=ORDER.index, default=Verdict.SKIPPED)


def action_of(
    verdict: Verdict,
    workload: Workload,
    *,
    policy: Policy,
    change: Change,
    is_late: bool,
    is_certain: bool = True,
) -> Action:
    """Return what the API server is told.

    A verdict on a job whose program was not seen (not *is_certain*) is never a denial: a wrong
    "no" is the worst answer. Nor is it on one that is exempt.
    """
    if policy.mode is Mode.OFF or workload.controlled or is_observed(workload):
        return Action.ALLOW
    wanted = _wanted(verdict, policy, is_late=is_late)
    is_strict = policy.mode is Mode.ENFORCE and policy.exemption is None
    denies = is_strict and is_certain and may_deny(workload, change)
    if wanted is Action.DENY and not denies:
        return Action.WARN
    return wanted


def may_deny(workload: Workload, change: Change) -> bool:
    """Return whether this change of this workload may be refused at all.

    What a controller made is never refused (it would try again without end); an update only
    before the start, and not if the stored object was just as bad.
    """
    if workload.controlled or is_observed(workload):
        return False
    if change.operation is Operation.CREATE:
        return True
    return not (workload.started or change.was_oom or change.resumes)


def is_observed(workload: Workload) -> bool:
    """Return whether workloads of this kind are only counted.

    Such are what serves, and templates that others start jobs from: `explain` alone judges those.
    """
    is_named = workload.ref.kind in OBSERVED_KINDS
    return is_named or workload.observe_only or workload.explain_only


def budget_of(node_class: NodeClass) -> int | None:
    """Return what a pod may use of one card of the class, if that is known."""
    return node_class.device.budget_bytes if node_class.device else None


def _compare(node_class: NodeClass, estimate: Estimate, budget: int) -> tuple[Verdict, Cause]:
    limit = estimate.allocator_limit_bytes
    if limit is not None and estimate.least.reserved_bytes > limit:
        return Verdict.OOM, Cause.OWN_LIMIT
    if estimate.least.device_bytes > budget:
        return _too_large(node_class, estimate)
    if estimate.enough.device_bytes > budget:
        return Verdict.TIGHT, Cause.LITTLE_ROOM
    if node_class.sharing == "time-slicing":
        return Verdict.TIGHT, Cause.SHARED_CARD
    return Verdict.FITS, Cause.FITS


def _too_large(node_class: NodeClass, estimate: Estimate) -> tuple[Verdict, Cause]:
    """Return the verdict on a budget that is too small: the card's, or what is declared of it.

    A device of a claim that asks for less has at least as much, and may be had whole.
    """
    declared = node_class.declared
    if declared is None or estimate.least.device_bytes > declared.whole_bytes:
        return Verdict.OOM, Cause.TOO_LARGE
    if declared.share.is_floor:
        return Verdict.TIGHT, Cause.DECLARED
    return Verdict.OOM, Cause.DECLARED


def _cause_of_worse(worst: ClassVerdict) -> Cause:
    return Cause.SHARED_CARD if worst.reason == Cause.SHARED_CARD else Cause.SMALL_CARD


def _wanted(verdict: Verdict, policy: Policy, *, is_late: bool) -> Action:
    match verdict:
        case Verdict.OOM:
            return Action.DENY
        case Verdict.TIGHT:
            return Action.WARN
        case Verdict.UNKNOWN if is_late:
            return Action.ALLOW if policy.on_late is Action.ALLOW else Action.WARN
        case Verdict.UNKNOWN:
            return policy.on_unknown
        case Verdict.FITS | Verdict.SKIPPED:
            return Action.ALLOW
