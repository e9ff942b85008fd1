"""Estimates of a job that died by lack of GPU memory: it needs more than that card gave.

    UnitJudgement, Floor -> UnitJudgement

More than `learning.floors` says, for one purpose: to leave the card that was not enough. It never
makes a denial, `deciding` sees to that.
"""

from __future__ import annotations

from dataclasses import replace

from admission.codes import Verdict
from admission.decision import best_of, budget_of, class_verdict, unit_verdict
from admission.floor import Floor
from admission.values import ClassVerdict, UnitJudgement
from estimator.result import Enough, Estimate, Least


def least_of(floor: Floor) -> int:
    """Return the bytes that a card must give: more than the one that was not enough."""
    return max(floor.nbytes, floor.gave + 1)


def raised(judged: UnitJudgement, floor: Floor | None) -> UnitJudgement:
    """Return *judged* as of a job that needs what *floor* says, whatever was estimated.

    Of a job that nobody could read, cards that give no more are too small; of the others it is
    not known, which is better than what is known.
    """
    if floor is None:
        return judged
    least = least_of(floor)
    classes = tuple(_raised_class(each, least) for each in judged.classes)
    verdict, reason = unit_verdict(classes)
    if verdict is Verdict.UNKNOWN:
        return replace(judged, classes=classes)
    best = best_of(classes)
    estimate = best.estimate if best else None
    return replace(judged, verdict=verdict, reason=reason, classes=classes, estimate=estimate)


def _raised_class(found: ClassVerdict, least: int) -> ClassVerdict:
    budget = budget_of(found.node_class)
    if found.estimate is not None:
        return class_verdict(found.node_class, _raised_estimate(found.estimate, least))
    if budget is not None and budget < least:
        return replace(found, verdict=Verdict.OOM)
    return found


def _raised_estimate(estimate: Estimate, nbytes: int) -> Estimate:
    # Of the card, not of its framework's pool: a limit that the job sets itself is another matter.
    reserved = estimate.least.reserved_bytes
    least = Least(reserved_bytes=reserved, device_bytes=max(estimate.least.device_bytes, nbytes))
    enough = Enough(device_bytes=max(estimate.enough.device_bytes, nbytes))
    return estimate.model_copy(update={"least": least, "enough": enough})
