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
from admission.codes import Action, Mode, Verdict
from admission.config import PolicySettings
from admission.decision import Change, Policy
from admission.errors import RequestError
from admission.estimates import AskingPool, EstimatePool
from admission.inventory import mode_label
from admission.judge.conclusion import conclude
from admission.judge.judging import judge
from admission.metrics import FAULT
from admission.response import Answer, allowed, denied, errored
from admission.review import JUDGED, Operation, Review, deadline_seconds, parse_review, uid_of
from admission.values import Json, Judgement, NodeClass, Workload
from admission.workloads import read_workload

GRACE_SECONDS = 0.25
"""A judgement that overruns its deadline by more than this is given up."""
FAULT_WARNING = "vramgate could not check this job, on its own account; it was let through"

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
    policy: Policy
    estimator: AskingPool
    started: float
    ends: float


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
    ) -> None:
        self._policy = policy
        self._cluster = cluster
        self._pool = pool
        self._metrics = metrics
        self._clock = clock

    async def answer(self, body: bytes, *, content_type: str, timeout_text: str | None) -> Answer:
        """Return the answer to one review; never raises."""
        started = self._clock()
        try:
            review = parse_review(body, content_type=content_type)
        except RequestError as error:
            return _refused(error, uid=uid_of(body))
        try:
            if review.operation not in JUDGED:
                return allowed(review.uid)
            return await self._reviewed(review, timeout_text=timeout_text, started=started)
        except RequestError as error:
            return _refused(error, uid=review.uid)
        except Exception:
            return self._fault(review, started=started)

    async def _reviewed(
        self, review: Review, *, timeout_text: str | None, started: float
    ) -> Answer:
        asked = _Asked(
            review=review,
            policy=self._policy_of(review),
            estimator=AskingPool(self._pool),
            started=started,
            ends=started + deadline_seconds(timeout_text),
        )
        workload = _workload(review, review.object)
        async with asyncio.timeout(asked.ends - self._clock() + GRACE_SECONDS):
            judgement = await self._judged(asked, workload)
        self._count(asked, judgement)
        return _answer(review, judgement)

    async def _judged(self, asked: _Asked, workload: Workload) -> Judgement:
        """Return the judgement; before an update is denied, that of what is stored counts too."""
        judgement = await self._judge(asked, workload)
        if judgement.action is not Action.DENY or asked.review.operation is Operation.CREATE:
            return judgement
        change = await self._change(asked, workload)
        return conclude(workload, judgement.units, policy=asked.policy, change=change)

    async def _judge(self, asked: _Asked, workload: Workload) -> Judgement:
        return await judge(
            workload,
            classes=self._cluster.classes,
            estimator=asked.estimator,
            policy=asked.policy,
            deadline_seconds=max(0.0, asked.ends - self._clock()),
        )

    async def _change(self, asked: _Asked, workload: Workload) -> Change:
        """Return what an update changes. What is stored and cannot be judged in time was `oom`."""
        stored = asked.review.old_object
        if stored is None:
            return Change(operation=Operation.UPDATE)
        before = _workload(asked.review, stored)
        resumes = (
            is_suspended(stored)
            and not is_suspended(asked.review.object)
            and _containers(before) == _containers(workload)
        )
        if resumes:
            return Change(operation=Operation.UPDATE, resumes=True)
        was = await self._judge(asked, before)
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
    units = (unit for unit in judgement.units if unit.verdict is Verdict.UNKNOWN)
    return tuple(dict.fromkeys(str(unit.reason) for unit in units))


def _workload(review: Review, obj: Json) -> Workload:
    return read_workload(obj, api_version=review.api_version, kind=review.kind)


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
