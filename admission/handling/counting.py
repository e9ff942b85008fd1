"""What is left of a review: metrics and one log line.

Judgement -> Entry; Review, Entry -> series, log
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import structlog
from structlog.typing import FilteringBoundLogger

from admission.cache import CacheResult
from admission.codes import Action, Mode, Operation, ReasonCode, Verdict
from admission.handling.asked import Counting
from admission.handling.withheld import Because, WithheldDenials, because_of
from admission.metric_labels import FAULT
from admission.metric_values import Admission, admission_of
from admission.review import Review, Route
from admission.values import Judgement

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is written of one judgement, whatever its object is called."""

    judgement: Judgement
    tally: Callable[[float], None]
    """Counts a review that took so many seconds."""
    sources: tuple[str, ...]
    """Where models were read from."""
    unknown: tuple[str, ...]
    because: Because | None
    """What withheld a denial."""
    admission: Admission | None
    """What the job takes; None where none begins: it is denied, or part of another."""
    line: Mapping[str, object]
    """Its part of the log line."""


def _bound() -> FilteringBoundLogger:
    bound: FilteringBoundLogger = _log.bind()
    return bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """Counts and logs answered reviews."""

    metrics: Counting
    clock: Callable[[], float]
    withheld: WithheldDenials
    log: FilteringBoundLogger = field(default_factory=_bound)
    """Bound by the settings of logs at the time: to find them for every line takes a while."""

    def entry(
        self, review: Review, judgement: Judgement, *, cache: CacheResult | None, operations: int
    ) -> Entry:
        """Return what is written of *judgement*, whose estimates came by way of *cache*."""
        because = because_of(judgement)
        begins = judgement.action is not Action.DENY and not judgement.workload.controlled
        specs = (unit.reading for unit in judgement.units if unit.reading.spec is not None)
        label = cache_label(judgement, cache)
        return Entry(
            judgement=judgement,
            tally=self.metrics.reviews(
                kind=review.kind,
                verdict=judgement.verdict,
                action=judgement.action,
                mode=judgement.mode,
                cache=label,
            ),
            sources=tuple(reading.sources.get("model.name", "") for reading in specs),
            unknown=_unknown_codes(judgement),
            because=because,
            admission=admission_of(judgement) if begins else None,
            line={
                "verdict": judgement.verdict.value,
                "reason": judgement.reason,
                "action": judgement.action.value,
                "mode": judgement.mode.value,
                "cache": label,
                "operations": operations,
                **({"would_deny": because.value} if because else {}),
            },
        )

    def reviewed(
        self, review: Review, entry: Entry, *, route: Route, started: float, is_again: bool
    ) -> None:
        """Count one answered review; what is read again is not counted again as read."""
        seconds, name = self.clock() - started, review.title
        entry.tally(seconds)
        if not is_again:
            self._count_reading(entry)
        if route is Route.VALIDATE and not review.dry_run:
            self._count_stored(review, entry, name=name)
        self.log.info(
            "reviewed",
            route=route,
            uid=review.uid,
            kind=review.kind,
            namespace=review.namespace,
            name=name,
            operation=review.operation,
            dry_run=review.dry_run,
            **entry.line,
            seconds=round(seconds, 4),
        )

    def opened(self) -> Books:
        """Return the same books, with log lines as the settings now have them."""
        return replace(self, log=_bound())

    def passed(self, review: Review, *, route: Route, started: float) -> None:
        """Count and log a review that was let pass unread, the policy being switched off."""
        seconds = self.clock() - started
        self.metrics.reviews(
            kind=review.kind,
            verdict=Verdict.SKIPPED,
            action=Action.ALLOW,
            mode=Mode.OFF,
            cache="none",
        )(seconds)
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
        self.metrics.reviews(
            kind=review.kind,
            verdict=Verdict.UNKNOWN,
            action=Action.ALLOW if mode is Mode.OFF else Action.WARN,
            mode=mode,
            cache="none",
        )(seconds)
        self.metrics.unknown(FAULT)

    def _count_stored(self, review: Review, entry: Entry, *, name: str) -> None:
        """Count, once an object, a job that begins and a denial that was withheld.

        `/validate` sees what is stored; a dry run stores nothing. What a controller makes for a job
        is part of it, and was counted with it.
        """
        if entry.admission is not None and review.operation is Operation.CREATE:
            self.metrics.admitted(entry.admission, name=name)
        if entry.because is not None:
            self.withheld.add(entry.judgement, name=name)
            self.metrics.denial_withheld(review.kind, entry.because.value)

    def _count_reading(self, entry: Entry) -> None:
        for source in entry.sources:
            self.metrics.read(source)
        for code in entry.unknown:
            self.metrics.unknown(code)


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
