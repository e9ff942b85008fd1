"""One review from its bytes to the answer.

    bytes -> Review -> Workload -> Judgement -> Answer

The one place that catches broad exceptions: a fault of ours lets the object pass with a warning,
its traceback goes to the log and nowhere else. Writes nothing anywhere, dry run or not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import structlog

from admission.audit import audit_of
from admission.codes import Action, Mode, ReasonCode, Verdict
from admission.errors import RequestError
from admission.estimates import AskingPool, EstimatePool
from admission.handling.asked import Asked, Cluster, Counting
from admission.handling.counting import Books
from admission.handling.judging import UNREAD, Judging
from admission.handling.mutating import Mutating, Patch
from admission.handling.policies import Policies, utc_now
from admission.handling.recalling import (
    Given,
    Memory,
    Question,
    Recalled,
    is_lasting,
    memory_of,
    nameless,
    question_of,
)
from admission.handling.withheld import WithheldDenials
from admission.judge.rounds import TimedFetching
from admission.learning.floors import Learnt
from admission.policy_settings import PolicySettings, SteeringSettings
from admission.reader import SMALL_BODY, ReviewReader, expands, is_small
from admission.response import Answer, Readdressed, allowed, denied, errored
from admission.review import (
    JUDGED,
    Review,
    Route,
    deadline_seconds,
    parse_document,
    parse_review,
    uid_of,
)
from admission.steer.notes import VERDICT
from admission.steer.terms import RECORD
from admission.threads import aside
from admission.values import Judgement
from admission.workloads.kind import Kinds

__all__ = ["FAULT_WARNING", "UNREAD", "Handler"]

FAULT_WARNING = "this job could not be checked, which is our fault; it was let through"
AGAIN_SECONDS = 1.0
"""How long `/validate` waits for an object that `/mutate` has judged: it was told already."""

_DISABLED = {
    "verdict": Verdict.SKIPPED.value,
    "mode": Mode.OFF.value,
    "reason": ReasonCode.DISABLED.value,
}

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desk:
    """The settings at work. A review keeps those that it began with."""

    policies: Policies
    judging: Judging
    mutating: Mutating


class Handler:
    """Answers reviews with what the cluster, the settings and the estimator say."""

    def __init__(
        self,
        *,
        policy: PolicySettings,
        cluster: Cluster,
        pool: EstimatePool,
        metrics: Counting,
        steering: SteeringSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
        reader: ReviewReader | None = None,
        sources: TimedFetching | None = None,
        learnt: Learnt | None = None,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._now = now
        self._cluster = cluster
        self._metrics = metrics
        self._learnt = learnt
        self._reader = reader or ReviewReader()
        self._desk = self._new_desk(policy, steering or SteeringSettings(), sources)
        self._withheld = WithheldDenials(now=now)
        self._books = Books(metrics=metrics, clock=clock, withheld=self._withheld)
        self._recalled = Recalled()
        self._mutates = False
        """Whether `/mutate` is asked at all: whoever writes an object can annotate it as well."""

    def use(
        self,
        *,
        policy: PolicySettings,
        steering: SteeringSettings,
        kinds: Kinds,
        sources: TimedFetching | None,
    ) -> None:
        """Answer by these settings from the next review on."""
        self._reader = self._reader.of(kinds)
        self._desk = self._new_desk(policy, steering, sources)
        self._books = self._books.opened()

    def report(self) -> bytes:
        """Return the last denials that were withheld, as JSON."""
        return self._withheld.text()

    def _new_desk(
        self, policy: PolicySettings, steering: SteeringSettings, sources: TimedFetching | None
    ) -> _Desk:
        cluster = self._cluster
        policies = Policies(policy=policy, steering=steering, cluster=cluster, now=self._now)
        judging = Judging(
            reader=self._reader,
            sources=sources,
            clock=self._clock,
            learnt=self._learnt,
        )
        mutating = Mutating(judging=judging, policies=policies, metrics=self._metrics)
        return _Desk(policies=policies, judging=judging, mutating=mutating)

    async def answer(
        self,
        body: bytes,
        *,
        content_type: str,
        timeout_text: str | None,
        route: Route = Route.VALIDATE,
    ) -> Answer:
        """Return the answer to one review; never raises."""
        started = self._clock()
        question: Question | None = None
        if len(body) <= SMALL_BODY:
            review, question = _parsed(body, content_type, route)
        else:
            review, _ = await aside(_parsed, body, content_type, None)
        if isinstance(review, Answer):
            return review
        if review.operation not in JUDGED:
            return allowed(review.uid)
        desk = self._desk
        if not desk.policies.policy.enabled:
            self._books.passed(review, route=route, started=started)
            return allowed(review.uid, audit=_DISABLED)
        if route is Route.MUTATE:
            self._mutates = True
        is_again = route is Route.VALIDATE and self._mutates and VERDICT in review.annotations
        try:
            memory = self._memory(desk, question) if question else None
            given = self._recalled.find(memory, self._pool) if memory else None
            if given is not None:
                return self._once_more(review, given, route, started=started, is_again=is_again)
            if question is not None:
                parse_review(question.document)  # nobody has looked at how deep it nests
            ends = started + deadline_seconds(timeout_text)
            asked = Asked(
                review=review,
                estimator=AskingPool(self._pool, asker=review.namespace),
                classes=self._cluster.classes,
                started=started,
                ends=min(ends, self._clock() + AGAIN_SECONDS) if is_again else ends,
                is_small=is_small(body),
                expands=expands(body),
                has_record=RECORD.encode() in body,
                is_again=is_again,
            )
            return await self._answered(desk, asked, memory, route)
        except RequestError as error:
            return _refused(error, uid=review.uid)
        except Exception:
            return self._fault(desk, review, started=started)

    def _once_more(
        self, review: Review, given: Given, route: Route, *, started: float, is_again: bool
    ) -> Answer:
        """Return what was answered before to the like of *review*, and count it as its own."""
        if given.entry.judgement.steered:
            self._metrics.steered(review.kind)
        self._books.reviewed(review, given.entry, route=route, started=started, is_again=is_again)
        return given.answer.to(review.uid)

    async def _answered(
        self, desk: _Desk, asked: Asked, memory: Memory | None, route: Route
    ) -> Answer:
        """Judge, and remember what lasts."""
        review, estimator = asked.review, asked.estimator
        judge = desk.mutating.mutated if route is Route.MUTATE else partial(self._validated, desk)
        try:
            judgement, patch = await judge(asked)
        finally:
            estimator.leave()
        answer = _answer(review, judgement, patch)
        entry = self._books.entry(review, judgement, cache=estimator.result, operations=len(patch))
        self._books.reviewed(
            review, entry, route=route, started=asked.started, is_again=asked.is_again
        )
        if memory is not None and self._lasts(desk, asked, memory, judgement):
            addressed = Readdressed(answer, uid=review.uid)
            known = tuple(estimator.known)
            self._recalled.keep(memory, Given(answer=addressed, entry=entry, known=known))
        return answer

    async def _validated(self, desk: _Desk, asked: Asked) -> tuple[Judgement, Patch]:
        """Judge the object as it will be stored; one that was told its verdict waits no longer.

        The answer comes from the cache as a rule: nothing that `/mutate` wrote is believed.
        """
        policy = desk.policies.of(asked.review)
        read = await desk.judging.read(asked, asked.review.object)
        judgement = await desk.judging.judged(asked, read, policy)
        judgement = await desk.judging.answered(asked, judgement, policy)
        if asked.is_again and judgement.cache == "late":
            judgement = replace(judgement, action=Action.ALLOW, warnings=(), is_spared=False)
        return judgement, ()

    def _memory(self, desk: _Desk, question: Question) -> Memory | None:
        return memory_of(
            question,
            settings=desk,
            policies=desk.policies,
            classes=self._cluster.classes,
            learnt=self._learnt,
        )

    def _lasts(self, desk: _Desk, asked: Asked, memory: Memory, judgement: Judgement) -> bool:
        """Return whether the same object would be judged the same, another name or not."""
        if desk is not self._desk or not is_lasting(asked, judgement, now=self._clock()):
            return False
        now = self._memory(desk, memory.question)
        if now is None or not memory.holds(now) or not self._recalled.is_again(memory):
            return False
        return self._reader.reads_alike(asked.review, nameless(asked.review.object))

    def _fault(self, desk: _Desk, review: Review, *, started: float) -> Answer:
        """Let the object pass and say so; nothing of what went wrong leaves this process."""
        mode = desk.policies.mode_of(review)
        self._books.failed(review, mode=mode, started=started)
        return allowed(review.uid, warnings=() if mode is Mode.OFF else (FAULT_WARNING,))


def _parsed(
    body: bytes, content_type: str, route: Route | None
) -> tuple[Review | Answer, Question | None]:
    """Return the review in *body*, or what a body that is none is answered.

    With a *route*, what may have been answered before is a question too, and not walked yet.
    """
    document: object = None
    try:
        document = parse_document(body, content_type=content_type)
        question = question_of(document, route) if route else None
        return question.review if question else parse_review(document), question
    except RequestError as error:
        return _refused(error, uid=uid_of(document)), None


def _answer(review: Review, judgement: Judgement, patch: Patch = ()) -> Answer:
    audit = audit_of(judgement)
    if judgement.action is Action.DENY:
        return denied(
            review.uid, message=judgement.message, warnings=judgement.warnings, audit=audit
        )
    return allowed(review.uid, warnings=judgement.warnings, audit=audit, patch=patch)


def _refused(error: RequestError, *, uid: str) -> Answer:
    _log.warning("request refused", uid=uid, reason=error.message[:300])
    return errored(str(error), uid=uid)
