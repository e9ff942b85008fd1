"""One review from its bytes to the answer.

    bytes -> Review -> Workload -> Judgement -> Answer

The one place that catches broad exceptions: a fault of ours lets the object pass with a warning,
its traceback goes to the log and nowhere else. Writes nothing anywhere, dry run or not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog

from admission.audit import audit_of
from admission.cache import CacheResult
from admission.codes import Action, Mode, ReasonCode, Verdict
from admission.config import PolicySettings
from admission.decision import Change, Policy, action_of
from admission.errors import RequestError
from admission.estimates import AskingPool, EstimatePool
from admission.inventory import mode_label
from admission.judge.conclusion import conclude
from admission.judge.judging import Views, judge_views
from admission.metrics import FAULT
from admission.reader import SMALL_BODY, ReviewReader, is_small
from admission.response import Answer, allowed, denied, errored
from admission.review import (
    JUDGED,
    Operation,
    Review,
    deadline_seconds,
    parse_document,
    parse_review,
    uid_of,
)
from admission.values import Json, Judgement, NodeClass, Workload
from admission.workloads import read_workload

GRACE_SECONDS = 0.25
"""A judgement that overruns its deadline by more than this is given up."""
FAULT_WARNING = "this job could not be checked, which is our fault; it was let through"
UNREAD = "this job could not be read in time; it was let through"

_log = structlog.get_logger()


class Cluster(Protocol):
    """What is known of the cluster: the inventory."""

    @property
    def classes(self) -> tuple[NodeClass, ...]:
        """Return the node classes."""
        ...

    def mode_of(self, namespace: str) -> Mode | None:
        """Return the mode that a namespace asks for."""
        ...


class Counting(Protocol):
    """Who counts reviews: the metrics."""

    def reviewed(
        self, *, kind: str, verdict: Verdict, action: Action, mode: Mode, cache: str, seconds: float
    ) -> None:
        """Count one answered review."""

    def read(self, source: str) -> None:
        """Count where a job's model was read from."""

    def unknown(self, code: str) -> None:
        """Count one reason for `unknown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One judgement being made: what every step of it needs."""

    review: Review
    estimator: AskingPool
    started: float
    ends: float
    is_small: bool


class Handler:
    """Answers reviews with what the cluster, the settings and the estimator say."""

    def __init__(
        self,
        *,
        policy: PolicySettings,
        cluster: Cluster,
        pool: EstimatePool,
        metrics: Counting,
        clock: Callable[[], float] = time.monotonic,
        reader: ReviewReader | None = None,
    ) -> None:
        self._reader = reader or ReviewReader()
        self._policy = policy
        self._cluster = cluster
        self._pool = pool
        self._metrics = metrics
        self._clock = clock

    async def answer(self, body: bytes, *, content_type: str, timeout_text: str | None) -> Answer:
        """Return the answer to one review; never raises."""
        started = self._clock()
        if len(body) <= SMALL_BODY:
            review = _parsed(body, content_type)
        else:
            review = await asyncio.to_thread(_parsed, body, content_type)
        if isinstance(review, Answer):
            return review
        asked = _Asked(
            review=review,
            estimator=AskingPool(self._pool, asker=review.namespace),
            started=started,
            ends=started + deadline_seconds(timeout_text),
            is_small=is_small(body),
        )
        try:
            return await self._reviewed(asked)
        except RequestError as error:
            return _refused(error, uid=review.uid)
        except Exception:
            return self._fault(review, started=started)
        finally:
            asked.estimator.leave()

    async def _reviewed(self, asked: _Asked) -> Answer:
        review = asked.review
        if review.operation not in JUDGED:
            return allowed(review.uid)
        judgement = await self._judged(asked)
        self._count(asked, judgement)
        return _answer(review, judgement)

    async def _judged(self, asked: _Asked) -> Judgement:
        """Return the judgement; before an update is denied, that of what is stored counts too."""
        read = await self._read(asked, asked.review.object)
        if read is None:
            return _unread(asked.review, self._policy_of(asked.review))
        judgement = await self._judge(asked, *read)
        if judgement.action is not Action.DENY or asked.review.operation is Operation.CREATE:
            return judgement
        workload, policy = judgement.workload, self._policy_of(asked.review)
        change = await self._change(asked, workload)
        return conclude(workload, judgement.units, policy=policy, change=change)

    async def _read(self, asked: _Asked, obj: Json) -> tuple[Workload, Views] | None:
        """Return *obj* as it was understood, None if not in time."""
        return await self._reader.read(
            asked.review,
            obj,
            classes=self._cluster.classes,
            seconds=asked.ends - self._clock(),
            is_small=asked.is_small,
        )

    async def _judge(self, asked: _Asked, workload: Workload, views: Views) -> Judgement:
        seconds = max(0.0, asked.ends - self._clock())
        async with asyncio.timeout(seconds + GRACE_SECONDS):
            return await judge_views(
                workload,
                views,
                estimator=asked.estimator,
                policy=self._policy_of(asked.review),
                deadline_seconds=seconds,
            )

    async def _change(self, asked: _Asked, workload: Workload) -> Change:
        """Return what an update changes. What is stored and cannot be judged in time was `oom`."""
        stored = asked.review.old_object
        if stored is None:
            return Change(operation=Operation.UPDATE)
        read = await self._read(asked, stored)
        if read is None:
            return Change(operation=Operation.UPDATE, was_oom=True)
        before, views = read
        resumes = (
            is_suspended(stored)
            and not is_suspended(asked.review.object)
            and _containers(before) == _containers(workload)
        )
        if resumes:
            return Change(operation=Operation.UPDATE, resumes=True)
        was = await self._judge(asked, before, views)
        was_oom = was.verdict is Verdict.OOM or was.cache == "late"
        return Change(operation=Operation.UPDATE, was_oom=was_oom)

    def _policy_of(self, review: Review) -> Policy:
        """Return the install's policy with the mode of the namespace or, where it may, the job."""
        mode = self._cluster.mode_of(review.namespace) or self._policy.mode
        if self._policy.workloads_may_loosen:
            metadata = review.object.get("metadata")
            mode = (mode_label(metadata) if isinstance(metadata, Mapping) else None) or mode
        return Policy(
            mode=mode,
            on_unknown=self._policy.on_unknown,
            on_late=Action(self._policy.on_late.value),
        )

    def _count(self, asked: _Asked, judgement: Judgement) -> None:
        review, seconds = asked.review, self._clock() - asked.started
        cache = cache_label(judgement, asked.estimator.result)
        self._metrics.reviewed(
            kind=review.kind,
            verdict=judgement.verdict,
            action=judgement.action,
            mode=judgement.mode,
            cache=cache,
            seconds=seconds,
        )
        for unit in judgement.units:
            if unit.reading.spec is not None:
                self._metrics.read(unit.reading.sources.get("model.name", ""))
        for code in _unknown_codes(judgement):
            self._metrics.unknown(code)
        _log.info(
            "reviewed",
            uid=review.uid,
            kind=review.kind,
            namespace=review.namespace,
            name=review.name or judgement.workload.ref.name,
            operation=review.operation.value,
            dry_run=review.dry_run,
            verdict=judgement.verdict.value,
            reason=judgement.reason,
            action=judgement.action.value,
            mode=judgement.mode.value,
            cache=cache,
            seconds=round(seconds, 4),
        )

    def _fault(self, review: Review, *, started: float) -> Answer:
        """Let the object pass and say so; nothing of what went wrong leaves this process."""
        seconds = self._clock() - started
        _log.exception(
            "review failed",
            uid=review.uid,
            kind=review.kind,
            namespace=review.namespace,
            name=review.name,
            seconds=round(seconds, 4),
        )
        mode = self._cluster.mode_of(review.namespace) or self._policy.mode
        silent = mode is Mode.OFF
        self._metrics.reviewed(
            kind=review.kind,
            verdict=Verdict.UNKNOWN,
            action=Action.ALLOW if silent else Action.WARN,
            mode=mode,
            cache="none",
            seconds=seconds,
        )
        self._metrics.unknown(FAULT)
        return allowed(review.uid, warnings=() if silent else (FAULT_WARNING,))


def is_suspended(obj: Json) -> bool:
    """Return whether a Job, CronJob or PyTorchJob is suspended."""
    spec = obj.get("spec")
    if not isinstance(spec, Mapping):
        return False
    policy = spec.get("runPolicy")
    return spec.get("suspend") is True or (
        isinstance(policy, Mapping) and policy.get("suspend") is True
    )


def cache_label(judgement: Judgement, result: CacheResult | None) -> str:
    """Return `hit`, `miss`, `late` or `none`: where the estimates of a judgement came from."""
    if judgement.cache == "late":
        return "late"
    if result is None:
        return "none"
    return "hit" if result is CacheResult.HIT else "miss"


def _unknown_codes(judgement: Judgement) -> tuple[str, ...]:
    if judgement.verdict is Verdict.UNKNOWN and not judgement.units:
        return (judgement.reason,)
    units = (unit for unit in judgement.units if unit.verdict is Verdict.UNKNOWN)
    return tuple(dict.fromkeys(str(unit.reason) for unit in units))


def _parsed(body: bytes, content_type: str) -> Review | Answer:
    """Return the review in *body*, or what a body that is none is answered."""
    document: object = None
    try:
        document = parse_document(body, content_type=content_type)
        return parse_review(document)
    except RequestError as error:
        return _refused(error, uid=uid_of(document))


def _unread(review: Review, policy: Policy) -> Judgement:
    """Return the judgement of what could not be read in time: late, whatever is in it."""
    # No such version has a reader: of the object its metadata alone is read.
    outline = {"apiVersion": "", "kind": review.kind, "metadata": review.object.get("metadata")}
    workload = read_workload(outline, api_version="unread")
    action = action_of(Verdict.UNKNOWN, workload, policy=policy, change=Change(), is_late=True)
    return Judgement(
        workload=workload,
        verdict=Verdict.UNKNOWN,
        action=action,
        mode=policy.mode,
        units=(),
        reason=ReasonCode.LATE,
        message=UNREAD,
        hints=(),
        warnings=(UNREAD,) if action is Action.WARN else (),
        cache="late",
    )


def _containers(workload: Workload) -> tuple[Json, ...]:
    return tuple(unit.container_spec for unit in workload.units)


def _answer(review: Review, judgement: Judgement) -> Answer:
    audit = audit_of(judgement)
    if judgement.action is Action.DENY:
        return denied(
            review.uid, message=judgement.message, warnings=judgement.warnings, audit=audit
        )
    return allowed(review.uid, warnings=judgement.warnings, audit=audit)


def _refused(error: RequestError, *, uid: str) -> Answer:
    _log.warning("request refused", uid=uid, reason=error.message[:300])
    return errored(str(error), uid=uid)
