"""Many scores in one line of figures.

    Scores -> Summary

Never over two metrics at once: whoever calls has put cases of one metric and view together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from tests.bench.accuracy.answers import Answer
from tests.bench.accuracy.cases import Case, Quality
from tests.bench.accuracy.run import Answers
from tests.bench.accuracy.scoring import Score, score


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A case and its score, absent where there is no answer."""

    case: Case
    score: Score | None
    is_fitted: bool = False
    """A constant of the estimator was fitted on this very case."""


class Standing(StrEnum):
    """How much of a case is known: the line of the tables it stands on, in their order."""

    SHARP = "sharp"
    BANDED = "banded"
    UNEXPRESSED = "unexpressed"


def standing(case: Case) -> Standing:
    """Return the line *case* stands on: `unexpressed` before `banded`."""
    if case.unexpressed:
        return Standing.UNEXPRESSED
    return Standing.BANDED if case.quality is Quality.BANDED else Standing.SHARP


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of some cases; all but the counts are absent if none has an answer."""

    num_cases: int
    num_answered: int
    median_error: float | None = None
    """Of the absolute relative error, as are the next three."""
    p90_error: float | None = None
    p95_error: float | None = None
    mean_error: float | None = None
    low_error: float | None = None
    """10th percentile of the signed error; then its median and its 90th percentile."""
    middle_error: float | None = None
    high_error: float | None = None
    under: float | None = None
    """Share of under-estimates."""
    failed: float | None = None
    """P(fail): share of readings outside [least, most]."""
    under_least: float | None = None
    over_most: float | None = None
    width: float | None = None
    """Median of most over least."""

    @property
    def num_unanswered(self) -> int:
        """Return how many cases have no answer."""
        return self.num_cases - self.num_answered


def scored(cases: Iterable[Case], answers: Answers, fitted: frozenset[str]) -> list[Scored]:
    """Return *cases* with their scores."""
    found = []
    for case in cases:
        answer = answers[case.id]
        figures = score(case, answer) if isinstance(answer, Answer) else None
        found.append(Scored(case=case, score=figures, is_fitted=case.id in fitted))
    return found


def summary(rows: Sequence[Scored]) -> Summary:
    """Return the figures of *rows*."""
    scores = [row.score for row in rows if row.score is not None]
    if not scores:
        return Summary(num_cases=len(rows), num_answered=0)
    signed = sorted(one.signed_error for one in scores)
    errors = sorted(abs(error) for error in signed)
    widths = [one.width for one in scores if one.width is not None]
    return Summary(
        num_cases=len(rows),
        num_answered=len(scores),
        median_error=median(errors),
        p90_error=quantile(errors, 0.9),
        p95_error=quantile(errors, 0.95),
        mean_error=sum(errors) / len(errors),
        low_error=quantile(signed, 0.1),
        middle_error=median(signed),
        high_error=quantile(signed, 0.9),
        under=share(error < 0 for error in signed),
        failed=share(not one.is_inside for one in scores),
        under_least=share(one.is_under_least for one in scores),
        over_most=share(one.is_over_most for one in scores),
        width=median(widths) if widths else None,
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the quantile of values in order, interpolated linearly between two of them."""
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def share(hits: Iterable[bool]) -> float:
    """Return the share of *hits* that are true."""
    found = list(hits)
    return sum(found) / len(found)
