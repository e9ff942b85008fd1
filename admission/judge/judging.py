"""The whole way from a workload to a verdict, for the webhook and the commands alike.

    Workload, NodeClasses, Estimator -> Judgement

Asks the estimator and waits no longer than the deadline. Catches what the estimator may say
(`EstimatorError`), never a fault of our own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from admission.capacity.eligibility import Reach, reach_of
from admission.codes import ReasonCode, Verdict
from admission.decision import (
    Change,
    Policy,
    best_of,
    budget_of,
    unit_verdict,
)
from admission.detect import read_unit
from admission.judge.asking import Answer, Question, answer_of, class_verdicts, devices_of
from admission.judge.conclusion import conclude
from admission.judge.deadline import Deadline, Late
from admission.message.findings import no_class
from admission.values import (
    NO_DOCUMENTS,
    ClassVerdict,
    Documents,
    Finding,
    Judgement,
    NodeClass,
    Reading,
    Unit,
    UnitJudgement,
    Workload,
)
from estimator.deferred import Deferred
from estimator.device import Device
from estimator.errors import EstimatorError
from estimator.workers.api import Estimator, Job, spec_of

if TYPE_CHECKING:
    from estimator import tracefile
    from estimator.result import Fit
    from estimator.spec import JobSpec
else:
    tracefile = Deferred("estimator.tracefile")


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """One unit with what was understood of it and where its pods may go."""

    unit: Unit
    reading: Reading
    reach: Reach


Views = tuple[_View, ...]


async def judge(
    workload: Workload,
    *,
    classes: Sequence[NodeClass],
    estimator: Estimator,
    policy: Policy,
    change: Change | None = None,
    documents: Documents = NO_DOCUMENTS,
    deadline_seconds: float | None = None,
) -> Judgement:
    """Return the verdict on *workload* and what to do about it.

    *classes* are all node classes of the cluster; *documents* are what was
    fetched for it. An estimate that is late makes `unknown`; late hints are left out.
    """
    views = read_views(workload, classes=classes, documents=documents)
    return await judge_views(
        workload,
        views,
        estimator=estimator,
        policy=policy,
        change=change,
        deadline_seconds=deadline_seconds,
    )


def read_views(
    workload: Workload,
    *,
    classes: Sequence[NodeClass],
    documents: Documents = NO_DOCUMENTS,
) -> Views:
    """Return what `judge` reads first, without asking anybody: safe in any thread."""
    return tuple(_view(unit, workload, classes, documents) for unit in workload.units)


async def judge_views(
    workload: Workload,
    views: Views,
    *,
    estimator: Estimator,
    policy: Policy,
    change: Change | None = None,
    deadline_seconds: float | None = None,
) -> Judgement:
    """Return what `judge` does, once the units of *workload* are read."""
    deadline = Deadline(deadline_seconds)
    answers = await _answers(views, estimator, deadline)
    units = await asyncio.gather(
        *(_finished(_judged(view, answers), view, estimator, deadline) for view in views)
    )
    return conclude(workload, units, policy=policy, change=change or Change())


def _view(
    unit: Unit,
    workload: Workload,
    classes: Sequence[NodeClass],
    documents: Documents,
) -> _View:
    reading = read_unit(unit, workload=workload, documents=documents)
    return _View(unit=unit, reading=reading, reach=reach_of(unit, classes))


async def _answers(
    views: Iterable[_View], estimator: Estimator, deadline: Deadline
) -> dict[str, Answer]:
    """Return the answer to each distinct spec, by its digest; all are asked at once."""
    questions = _questions(views)
    found = await asyncio.gather(
        *(answer_of(question, estimator, deadline) for question in questions.values())
    )
    return dict(zip(questions, found, strict=True))


def _questions(views: Iterable[_View]) -> dict[str, Question]:
    """Return one question a spec, over every card that one of its units may use."""
    questions: dict[str, Question] = {}
    for view in views:
        job = view.reading.job
        devices = devices_of(view.reach.reachable)
        if job is None or not devices:
            continue
        digest = spec_of(job).digest()
        asked = questions.get(digest)
        together = dict.fromkeys((*(asked.devices if asked else ()), *devices))
        questions[digest] = Question(job=job, devices=tuple(together))
    return questions


def _judged(view: _View, answers: Mapping[str, Answer]) -> UnitJudgement:
    """Return the verdict on one unit, without hints."""
    reading = view.reading
    if reading.skip is not None:
        return _without_estimate(view, Verdict.SKIPPED, reading.skip)
    if reading.spec is None:
        return _unknown(view, reading.unknowns)
    answer = answers.get(reading.spec.digest(), Answer(estimates={}))
    if answer.findings:
        return _unknown(view, answer.findings)
    verdicts = class_verdicts(view.reach.reachable, answer.estimates)
    verdict, reason = unit_verdict(verdicts)
    best = best_of(verdicts)
    findings = (no_class(verdicts, view.reach),) if verdict is Verdict.UNKNOWN else ()
    return UnitJudgement(
        unit=view.unit,
        reading=reading,
        verdict=verdict,
        classes=verdicts,
        estimate=best.estimate if best else None,
        reason=reason,
        findings=findings,
    )


def _unknown(view: _View, findings: tuple[Finding, ...]) -> UnitJudgement:
    reason = findings[0].code if findings else ReasonCode.ESTIMATOR_FAILED
    judged = _without_estimate(view, Verdict.UNKNOWN, reason)
    return replace(judged, findings=findings)


def _without_estimate(view: _View, verdict: Verdict, reason: str) -> UnitJudgement:
    return UnitJudgement(
        unit=view.unit,
        reading=view.reading,
        verdict=verdict,
        classes=class_verdicts(view.reach.reachable, {}),
        estimate=None,
        reason=reason,
    )


async def _finished(
    judged: UnitJudgement, view: _View, estimator: Estimator, deadline: Deadline
) -> UnitJudgement:
    """Return *judged* with what is asked only of jobs that no card they may use holds."""
    certain = await _behind_taints(judged, view, estimator, deadline)
    return await _with_hints(certain, view, estimator, deadline)


async def _behind_taints(
    judged: UnitJudgement, view: _View, estimator: Estimator, deadline: Deadline
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
    verdicts = class_verdicts(tainted, answer.estimates)
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
    judged: UnitJudgement, view: _View, estimator: Estimator, deadline: Deadline
) -> UnitJudgement:
    """Return *judged* with what would fit, if it is `oom` and there is time to find out."""
    job, best = judged.reading.job, best_of(judged.classes)
    if judged.verdict is not Verdict.OOM or job is None or best is None:
        return judged
    fits, elsewhere = await asyncio.gather(
        _fits(job, best, estimator, deadline),
        _elsewhere(job, best, view.reach.closed, estimator, deadline),
    )
    return replace(judged, fits=fits, elsewhere=elsewhere)


async def _fits(
    job: Job, best: ClassVerdict, estimator: Estimator, deadline: Deadline
) -> tuple[Fit, ...]:
    """Return what would fit the largest card the pod may use; nothing if that is not known.

    A recorded job is known at one size only.
    """
    device = best.node_class.device
    if device is None or isinstance(job, tracefile.Recording):
        return ()
    try:
        return await deadline.of(_fit(job, device, estimator))
    except (Late, EstimatorError):
        return ()


async def _fit(spec: JobSpec, device: Device, estimator: Estimator) -> tuple[Fit, ...]:
    return await estimator.fit(spec, (device,))


async def _elsewhere(
    job: Job,
    best: ClassVerdict,
    closed: Sequence[NodeClass],
    estimator: Estimator,
    deadline: Deadline,
) -> tuple[ClassVerdict, ...]:
    """Return the verdicts on cards the pod may not use, as far as they are larger."""
    budget = budget_of(best.node_class) or 0
    larger = [node_class for node_class in closed if (budget_of(node_class) or 0) > budget]
    devices = devices_of(larger)
    if not devices:
        return ()
    answer = await answer_of(Question(job=job, devices=devices), estimator, deadline)
    return class_verdicts(larger, answer.estimates)
