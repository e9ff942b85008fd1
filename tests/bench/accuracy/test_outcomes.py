"""A job that ran is never rejected, and one that died is not passed."""

from __future__ import annotations

import pytest

from tests.bench.accuracy.answers import Answer, NoAnswer
from tests.bench.accuracy.builders import answer_of, case_of, outcome_of
from tests.bench.accuracy.cases import End
from tests.bench.accuracy.outcomes import Verdict, judged, measured_as_ran, verdict


@pytest.mark.parametrize(
    ("usable", "expected"),
    [
        (79, Verdict.REJECTED),
        (80, Verdict.OPEN),
        (120, Verdict.OPEN),
        (121, Verdict.PASSED),
        (None, Verdict.UNKNOWN),
    ],
)
def test_a_card_is_held_against_device(usable: int | None, expected: Verdict) -> None:
    """Rejected below `least`, passed above `most`, open between them."""
    assert verdict(answer_of(usable=usable)) is expected


@pytest.mark.parametrize(
    ("cap", "expected"), [(69, Verdict.REJECTED), (70, Verdict.OPEN), (111, Verdict.PASSED)]
)
def test_a_cap_of_the_allocator_is_held_against_reserved(cap: int, expected: Verdict) -> None:
    """The context comes on top of a cap, so device is not what it binds."""
    assert verdict(answer_of(), cap_bytes=cap) is expected


def test_a_job_without_an_estimate_is_unknown() -> None:
    """Neither a false rejection nor a missed one."""
    assert verdict(NoAnswer(kind="spec", message="")) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("end", "cap", "false_rejection", "missed"),
    [
        (End.RAN, 69, True, False),
        (End.RAN, 100, False, False),
        (End.RAN, 111, False, False),
        (End.OOM, 69, False, False),
        (End.OOM, 100, False, False),
        (End.OOM, 111, False, True),
    ],
)
def test_only_the_two_wrong_pairs_are_errors(
    end: End, cap: int, false_rejection: bool, missed: bool
) -> None:
    """A rejected job that ran, a passed job that died; an open limit is neither."""
    (found,) = judged([outcome_of(end=end, cap_bytes=cap)], {"group/job": answer_of()})

    assert (found.is_false_rejection, found.is_missed) == (false_rejection, missed)


def test_every_measured_case_ran_on_its_card() -> None:
    """A reading above what the card can give, by `least`, is a false rejection too."""
    answer: Answer = answer_of(usable=79)

    (found,) = measured_as_ran([case_of()], {"group/case": answer})

    assert found.is_false_rejection
