"""Which card a waiting pod misses, in words.

    UnitJudgement, CardUses -> a note for an Event

Needs are rounded up and capacities down, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from admission.codes import Verdict
from admission.controller.usage import CardUse
from admission.decision import budget_of
from admission.message.naming import MAX_CARDS
from admission.values import ClassVerdict, UnitJudgement
from estimator.units import gib_down, gib_up


def card_missing(
    judged: UnitJudgement | None,
    left_open: Sequence[CardUse],
    shut: Sequence[CardUse],
    *,
    gpus: int,
    root: str,
) -> str:
    """Return what the pod needs, who has it, and what steering keeps it from.

    *judged* is None where what it needs is not known any more; *gpus* are those of the pod.
    """
    many = f" It asks for {gpus} GPUs of one node." if gpus > 1 else ""
    if any(use.num_nodes for use in left_open):
        have = f"waits for a card: {_need(judged, left_open)}, steering leaves it {_all(left_open)}"
    else:
        have = f"waits for a card that no node has now: {_need(judged, left_open)}"
    kept = "; ".join(_shut(use, judged) for use in shut[:MAX_CARDS])
    others = f" Steering keeps it off {kept}." if kept else ""
    return (
        f"{have}.{many}{others} Wait until one is free or add a node with one; to let it go "
        f"elsewhere, make {root} anew with the label vramgate.dev/steer: preferred."
    )


def let_go(pod: str, targets: Sequence[CardUse], judged: UnitJudgement) -> str:
    """Return that a pod is made anew for a card that may hold it."""
    where = "; ".join(_shut(use, judged) for use in targets[:MAX_CARDS])
    return (
        f"Steering is relaxed (controller.relaxSteering): {where}. Pod {pod} waited for a larger "
        "card and is deleted, so that another is made from the template."
    )


def _need(judged: UnitJudgement | None, uses: Iterable[CardUse]) -> str:
    """Return what it needs on the cards that are left to it; on any if none is."""
    names = {use.name for use in uses}
    classes = judged.classes if judged else ()
    known = [found for found in classes if found.estimate is not None]
    there = [found for found in known if found.node_class.name in names] or known
    needs = [found.estimate.enough.device_bytes for found in there if found.estimate]
    if not needs:
        return "what it needs is not known"
    return f"it needs {gib_up(min(needs))} on one GPU"


def _all(uses: Sequence[CardUse]) -> str:
    more = f" and {len(uses) - MAX_CARDS} more kinds" if len(uses) > MAX_CARDS else ""
    return ", ".join(use.said for use in uses[:MAX_CARDS]) + more


def _shut(use: CardUse, judged: UnitJudgement | None) -> str:
    """Return one card and what speaks against it."""
    found = _found(use.name, judged.classes) if judged else None
    budget = budget_of(found.node_class) if found else None
    if found is None or budget is None or found.estimate is None:
        return f"{use.said}, of which nothing is known"
    estimate = found.estimate
    match found.verdict:
        case Verdict.OOM:
            why = f"too little: it needs at least {gib_up(estimate.least.device_bytes)} there"
        case Verdict.TIGHT:
            least, enough = estimate.least.device_bytes, estimate.enough.device_bytes
            why = f"which may do: it needs {gib_up(least)} to {gib_up(enough)} there"
        case _:
            why = "which would do"
    return f"{use.said}, which gives it {gib_down(budget)}, {why}"


def _found(name: str, classes: Iterable[ClassVerdict]) -> ClassVerdict | None:
    return next((found for found in classes if found.node_class.name == name), None)
