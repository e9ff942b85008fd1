"""Jobs known to have run or died, against `least` and `most`.

    Outcome | Case, Answer -> Judgement

A job that ran and would have been rejected is the worst error there is: a *false rejection*.
One that died with `most` below its limit is *missed*. Every measured case ran on its card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.bench.accuracy.answers import Answer
from tests.bench.accuracy.cases import Case, End, Outcome
from tests.bench.accuracy.run import Answers


class Verdict(StrEnum):
    """What the estimate says of a job of known outcome."""

    REJECTED = "rejected"
    """`least` is above the limit."""
    PASSED = "passed"
    """`most` is below the limit."""
    OPEN = "open"
    """The limit lies between them."""
    UNKNOWN = "unknown"
    """No estimate, or a card of unknown capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What was said of a job and what became of it."""

    id: str
    group: str
    end: End
    verdict: Verdict
    is_capped: bool = False

    @property
    def is_false_rejection(self) -> bool:
        """Return whether a job that ran would have been rejected."""
        return self.end is End.RAN and self.verdict is Verdict.REJECTED

    @property
    def is_missed(self) -> bool:
        """Return whether a job that died would have been passed."""
        return self.end is End.OOM and self.verdict is Verdict.PASSED


def judged(outcomes: Sequence[Outcome], answers: Answers) -> list[Judgement]:
    """Return the judgement of each of *outcomes*."""
    return [
        Judgement(
            id=outcome.id,
            group=outcome.group,
            end=outcome.end,
            verdict=verdict(answers[outcome.id], cap_bytes=outcome.cap_bytes),
            is_capped=outcome.cap_bytes is not None,
        )
        for outcome in outcomes
    ]


def measured_as_ran(cases: Sequence[Case], answers: Answers) -> list[Judgement]:
    """Return the judgement of each of *cases*, all of which ran on their card."""
    return [
        Judgement(id=case.id, group=case.group, end=End.RAN, verdict=verdict(answers[case.id]))
        for case in cases
    ]


def verdict(answer: object, *, cap_bytes: int | None = None) -> Verdict:
    """Return what *answer* says of a job whose allocator may hold *cap_bytes*, or of its card.

    A cap binds the allocator, so reserved is compared with it; the context comes on top. A card
    binds the process: what it can get is the total less the driver's own reservation.
    """
    if not isinstance(answer, Answer):
        return Verdict.UNKNOWN
    if cap_bytes is not None:
        return _between(answer.least.reserved, answer.most.reserved, cap_bytes)
    return _between(answer.least.device, answer.most.device, answer.usable_bytes)


def _between(least: int | None, most: int | None, limit: int | None) -> Verdict:
    if least is None or most is None or limit is None:
        return Verdict.UNKNOWN
    if least > limit:
        return Verdict.REJECTED
    return Verdict.PASSED if most < limit else Verdict.OPEN
