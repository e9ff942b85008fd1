"""What is asked only of jobs that no card they may use holds: other cards, and what would fit.

    UnitJudgement, View, Estimator, Deadline -> UnitJudgement

What cannot be had in time is left out, and refuses nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from admission.codes import Verdict
from admission.decision import best_of, budget_of, unit_verdict
from admission.floor import Floor
from admission.judge.asking import Answer, Question, answer_of, class_verdicts, devices_of
from admission.judge.deadline import Deadline, Late
from admission.judge.views import View
from admission.message.findings import no_class
from admission.values import ClassVerdict, UnitJudgement
from estimator.deferred import Deferred
from estimator.device import Device
from estimator.errors import EstimatorError
from estimator.workers.api import Estimator, Job

if TYPE_CHECKING:
    import asyncio

    from estimator import tracefile
    from estimator.result import Fit
    from estimator.spec import JobSpec
else:
    asyncio = Deferred("asyncio")
    tracefile = Deferred("estimator.tracefile")


def is_settled(judged: UnitJudgement, view: View) -> bool:
    """Return whether `finished` has nothing to ask."""
    return not _wants_hints(judged) and bool(view.reach.reachable)


def _wants_hints(judged: UnitJudgement) -> bool:
    """Return whether no card it may use holds it, or none is larger than one it died on."""
    if judged.verdict is Verdict.OOM:
        return True
    floor = judged.floor
    if floor is None or judged.verdict is not Verdict.TIGHT:
        return False
    return all((budget_of(found.node_class) or 0) < floor.nbytes for found in judged.classes)


async def finished(
    judged: UnitJudgement, view: View, *, estimator: Estimator, deadline: Deadline
) -> UnitJudgement:
    """Return *judged* with what is asked only of jobs that no card they may use holds."""
    certain = await _behind_taints(judged, view, estimator, deadline)
    return await _with_hints(certain, view, estimator, deadline)


async def _behind_taints(
    judged: UnitJudgement, view: View, estimator: Estimator, deadline: Deadline
) -> UnitJudgement:
    """Return *judged* with the cards that a toleration would open which its pods may be given.

    They keep a job from being refused. If they cannot be asked in time, nothing is refused either.
    """
    job, tainted = judged.reading.job, view.reach.tainted
    is_held = judged.verdict is not Verdict.OOM and bool(view.reach.reachable)
    if job is None or not tainted or is_held:
        return judged
    devices = devices_of(tainted)
    question = Question(job=job, devices=devices)
    answer = await answer_of(question, estimator, deadline) if devices else Answer(estimates={})
    if answer.findings:
        code = answer.findings[0].code
        return replace(judged, verdict=Verdict.UNKNOWN, reason=code, findings=answer.findings)
    verdicts = class_verdicts(tainted, answer.estimates, floor=view.floor)
    verdict, reason = unit_verdict(judged.classes, tainted=verdicts)
    if verdict is Verdict.TIGHT:
        best = best_of(judged.classes) or best_of(verdicts)
        return replace(
            judged,
            verdict=verdict,
            reason=reason,
            estimate=best.estimate if best else None,
            findings=(),
            elsewhere=verdicts,
        )
    if verdict is Verdict.UNKNOWN and judged.verdict is Verdict.OOM:
        findings = (no_class(verdicts, view.reach),)
        return replace(judged, verdict=verdict, reason=reason, findings=findings)
    return judged


async def _with_hints(
    judged: UnitJudgement, view: View, estimator: Estimator, deadline: Deadline
) -> UnitJudgement:
    """Return *judged* with what would fit, if it is `oom` and there is time to find out."""
    job, best = judged.reading.job, best_of(judged.classes)
    if not _wants_hints(judged) or job is None or best is None:
        return judged
    fits, elsewhere = await asyncio.gather(
        _fits(job, best, judged.floor, estimator, deadline),
        _elsewhere(job, best, view, estimator, deadline),
    )
    return replace(judged, fits=fits, elsewhere=elsewhere)


async def _fits(
    job: Job,
    best: ClassVerdict,
    floor: Floor | None,
    estimator: Estimator,
    deadline: Deadline,
) -> tuple[Fit, ...]:
    """Return what would fit the largest card the pod may use; nothing if that is not known.

    A recorded job is known at one size only. A job that died there needs more than was estimated:
    as much more is taken to be needed of whatever is tried.
    """
    device = best.node_class.device
    if device is None or isinstance(job, tracefile.Recording):
        return ()
    try:
        if floor is not None:
            device = await deadline.of(_smaller(job, device, floor, estimator))
        return await deadline.of(_fit(job, device, estimator))
    except (Late, EstimatorError):
        return ()


async def _fit(spec: JobSpec, device: Device, estimator: Estimator) -> tuple[Fit, ...]:
    return await estimator.fit(spec, (device,))


async def _smaller(spec: JobSpec, device: Device, floor: Floor, estimator: Estimator) -> Device:
    """Return *device* with its budget less by as much as *spec* was estimated too low."""
    (estimate,) = await estimator.estimate(spec, (device,))
    enough, budget = estimate.enough.device_bytes, device.budget_bytes
    if budget is None or enough >= floor.nbytes:
        return device
    return replace(device, budget_bytes=budget * enough // floor.nbytes)


async def _elsewhere(
    job: Job,
    best: ClassVerdict,
    view: View,
    estimator: Estimator,
    deadline: Deadline,
) -> tuple[ClassVerdict, ...]:
    """Return the verdicts on cards the pod may not use, as far as they are larger."""
    budget = budget_of(best.node_class) or 0
    closed = view.reach.closed
    larger = [node_class for node_class in closed if (budget_of(node_class) or 0) > budget]
    devices = devices_of(larger)
    if not devices:
        return ()
    answer = await answer_of(Question(job=job, devices=devices), estimator, deadline)
    return class_verdicts(larger, answer.estimates, floor=view.floor)
