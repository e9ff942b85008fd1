"""The whole way from a workload to a verdict, for the webhook and the commands alike.

    Workload, NodeClasses, Estimator -> Judgement

Asks the estimator and waits no longer than the deadline. Catches what the estimator may say
(`EstimatorError`), never a fault of our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from admission.codes import ReasonCode, Verdict
from admission.decision import (
    Change,
    Policy,
    best_of,
    unit_verdict,
)
from admission.judge.asking import (
    Answer,
    Question,
    answer_of,
    class_verdicts,
    corrected,
    devices_of,
    remembered_answer,
)
from admission.judge.conclusion import conclude
from admission.judge.deadline import Deadline
from admission.judge.finishing import finished, is_settled
from admission.judge.views import View, Views, read_views, with_floors
from admission.learning.floors import Learnt
from admission.message.findings import late, no_class
from admission.values import (
    NO_DOCUMENTS,
    Documents,
    Finding,
    Judgement,
    NodeClass,
    UnitJudgement,
    Workload,
)
from estimator.deferred import Deferred
from estimator.workers.api import Estimator

if TYPE_CHECKING:
    import asyncio

    from estimator import tracefile
else:
    asyncio = Deferred("asyncio")
    tracefile = Deferred("estimator.tracefile")


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


async def judge_views(
    workload: Workload,
    views: Views,
    *,
    estimator: Estimator,
    policy: Policy,
    change: Change | None = None,
    deadline_seconds: float | None = None,
    learnt: Learnt | None = None,
) -> Judgement:
    """Return what `judge` does, once the units of *workload* are read.

    What is *learnt* of its containers raises what is enough for them, never what they need at
    least: it makes no verdict `oom`. What was measured of others moves `peak` and `most` alone.
    """
    views = with_floors(views, workload, learnt)
    judgement = judged_unasked(workload, views, policy=policy, change=change)
    if judgement is not None:
        return judgement
    deadline = Deadline(deadline_seconds)
    answers = await _answers(views, estimator, deadline)
    if learnt is not None and learnt.corrections:
        answers = {key: corrected(answer, learnt.corrections) for key, answer in answers.items()}
    units = [_judged(view, answers) for view in views]
    if not all(map(is_settled, units, views)):
        finishing = map(partial(finished, estimator=estimator, deadline=deadline), units, views)
        units = await asyncio.gather(*finishing)
    return conclude(workload, units, policy=policy, change=change or Change())


def judged_unasked(
    workload: Workload, views: Views, *, policy: Policy, change: Change | None = None
) -> Judgement | None:
    """Return what `judge` does of a workload without a job to estimate; None if there is one."""
    if any(view.reading.job is not None for view in views):
        return None
    units = [_judged(view, {}) for view in views]
    return conclude(workload, units, policy=policy, change=change or Change())


def judged_late(workload: Workload, views: Views, *, policy: Policy) -> Judgement:
    """Return what `judge` does of *workload* while nothing of it is estimated yet."""
    answer = Answer(estimates={}, findings=(late(),))
    units = [_judged(view, {view.digest: answer}) for view in views]
    return conclude(workload, units, policy=policy, change=Change())


async def _answers(
    views: Iterable[View], estimator: Estimator, deadline: Deadline
) -> dict[str, Answer]:
    """Return the answer to each distinct spec, by its digest; all are asked at once.

    What is remembered is had without a turn of the event loop: a task for each question would let
    every other review in between.
    """
    answers: dict[str, Answer] = {}
    asked: dict[str, Question] = {}
    for digest, question in _questions(views).items():
        answer = remembered_answer(question, digest, estimator)
        if answer is None:
            asked[digest] = question
        else:
            answers[digest] = answer
    if asked:
        found = await asyncio.gather(
            *(answer_of(question, estimator, deadline) for question in asked.values())
        )
        answers.update(zip(asked, found, strict=True))
    return answers


def _questions(views: Iterable[View]) -> dict[str, Question]:
    """Return one question a spec, over every card that one of its units may use."""
    questions: dict[str, Question] = {}
    for view in views:
        job = view.reading.job
        devices = devices_of(view.reach.reachable)
        if job is None or not devices:
            continue
        asked = questions.get(view.digest)
        together = dict.fromkeys((*(asked.devices if asked else ()), *devices))
        questions[view.digest] = Question(job=job, devices=tuple(together))
    return questions


def _judged(view: View, answers: Mapping[str, Answer]) -> UnitJudgement:
    """Return the verdict on one unit, without hints."""
    reading = view.reading
    if reading.skip is not None:
        return _without_estimate(view, Verdict.SKIPPED, reading.skip)
    if reading.spec is None:
        return _unknown(view, reading.unknowns)
    answer = answers.get(view.digest, Answer(estimates={}))
    if answer.findings:
        return _unknown(view, answer.findings)
    verdicts = class_verdicts(view.reach.reachable, answer.estimates, floor=view.floor)
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
        floor=view.floor,
    )


def _unknown(view: View, findings: tuple[Finding, ...]) -> UnitJudgement:
    reason = findings[0].code if findings else ReasonCode.ESTIMATOR_FAILED
    judged = _without_estimate(view, Verdict.UNKNOWN, reason)
    return replace(judged, findings=findings)


def _without_estimate(view: View, verdict: Verdict, reason: str) -> UnitJudgement:
    return UnitJudgement(
        unit=view.unit,
        reading=view.reading,
        verdict=verdict,
        classes=class_verdicts(view.reach.reachable, {}),
        estimate=None,
        reason=reason,
        floor=view.floor,
    )
