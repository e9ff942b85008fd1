"""What is left of a review: metrics and one log line.

Asked, Judgement -> series, log
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from admission.cache import CacheResult
from admission.codes import Action, Mode, Operation, ReasonCode, Verdict
from admission.handling.asked import Asked, Counting
from admission.handling.withheld import Because, WithheldDenials, because_of
from admission.metric_labels import FAULT
from admission.review import Review, Route
from admission.values import Judgement

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """Counts and logs answered reviews."""

    metrics: Counting
    clock: Callable[[], float]
    withheld: WithheldDenials

    def reviewed(
        self, asked: Asked, judgement: Judgement, *, route: Route, num_operations: int = 0
    ) -> None:
        """Count one answered review; what is read again is not counted again as read."""
        review, seconds = asked.review, self.clock() - asked.started
        cache = cache_label(judgement, asked.estimator.result)
        self.metrics.reviewed(
            kind=review.kind,
            verdict=judgement.verdict,
            action=judgement.action,
            mode=judgement.mode,
            cache=cache,
            seconds=seconds,
        )
        if not asked.is_again:
            self._count_reading(judgement)
        if _is_new(review, judgement, route):
            self.metrics.admitted(judgement, name=_name(review))
        because = self._withheld(review, judgement, route)
        _log.info(
            "reviewed",
            route=route.value,
            uid=review.uid,
            kind=review.kind,
            namespace=review.namespace,
            name=_name(review),
            operation=review.operation.value,
            dry_run=review.dry_run,
            verdict=judgement.verdict.value,
            reason=judgement.reason,
            action=judgement.action.value,
            mode=judgement.mode.value,
            cache=cache,
            operations=num_operations,
            seconds=round(seconds, 4),
            **({"would_deny": because.value} if because else {}),
        )

    def passed(self, review: Review, *, route: Route, started: float) -> None:
        """Count and log a review that was let pass unread, the policy being switched off."""
        seconds = self.clock() - started
        self.metrics.reviewed(
            kind=review.kind,
            verdict=Verdict.SKIPPED,
            action=Action.ALLOW,
            mode=Mode.OFF,
            cache="none",
            seconds=seconds,
        )
        _log.info(
            "reviewed",
            route=route.value,
            uid=review.uid,
            kind=review.kind,
            namespace=review.namespace,
            name=review.name,
            operation=review.operation.value,
            dry_run=review.dry_run,
            verdict=Verdict.SKIPPED.value,
            reason=ReasonCode.DISABLED.value,
            action=Action.ALLOW.value,
            mode=Mode.OFF.value,
            seconds=round(seconds, 4),
        )

    def failed(self, review: Review, *, mode: Mode, started: float) -> None:
        """Count and log, with its traceback, a review that failed on our own account."""
        seconds = self.clock() - started
        _log.exception(
            "review failed",
            uid=review.uid,
            kind=review.kind,
            namespace=review.namespace,
            name=review.name,
            seconds=round(seconds, 4),
        )
        self.metrics.reviewed(
            kind=review.kind,
            verdict=Verdict.UNKNOWN,
            action=Action.ALLOW if mode is Mode.OFF else Action.WARN,
            mode=mode,
            cache="none",
            seconds=seconds,
        )
        self.metrics.unknown(FAULT)

    def _withheld(self, review: Review, judgement: Judgement, route: Route) -> Because | None:
        """Note a denial that was withheld, once an object: `/validate` sees what is stored.

        A dry run stores nothing, and is logged without being noted.
        """
        because = because_of(judgement)
        if because is not None and route is Route.VALIDATE and not review.dry_run:
            self.withheld.add(judgement, name=_name(review))
            self.metrics.denial_withheld(review.kind, because.value)
        return because

    def _count_reading(self, judgement: Judgement) -> None:
        for unit in judgement.units:
            if unit.reading.spec is not None:
                self.metrics.read(unit.reading.sources.get("model.name", ""))
        for code in _unknown_codes(judgement):
            self.metrics.unknown(code)


def cache_label(judgement: Judgement, result: CacheResult | None) -> str:
    """Return `hit`, `miss`, `late` or `none`: where the estimates of a judgement came from."""
    if judgement.cache == "late":
        return "late"
    if result is None:
        return "none"
    return "hit" if result is CacheResult.HIT else "miss"


def _is_new(review: Review, judgement: Judgement, route: Route) -> bool:
    """Return whether a job begins to be with this answer: `/validate` sees what is stored.

    What a controller makes for a job is part of it, and was counted with it.
    """
    is_stored = route is Route.VALIDATE and not review.dry_run
    is_made = review.operation is Operation.CREATE and not judgement.workload.controlled
    return is_stored and is_made and judgement.action is not Action.DENY


def _name(review: Review) -> str:
    """Return the object's name, or what the API server will make one of (`generateName`).

    The review's own: its judgement may be that of its like.
    """
    metadata = review.object.get("metadata")
    own = metadata if isinstance(metadata, Mapping) else {}
    return review.name or str(own.get("name") or own.get("generateName") or "")


def _unknown_codes(judgement: Judgement) -> tuple[str, ...]:
    if judgement.verdict is Verdict.UNKNOWN and not judgement.units:
        return (judgement.reason,)
    units = (unit for unit in judgement.units if unit.verdict is Verdict.UNKNOWN)
    return tuple(dict.fromkeys(str(unit.reason) for unit in units))
