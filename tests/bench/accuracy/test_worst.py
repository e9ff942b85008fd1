"""The worst cases come with what is known of why."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from tests.bench.accuracy.answers import Answer
from tests.bench.accuracy.builders import answer_of, case_of, erring, scored_of
from tests.bench.accuracy.cases import Case, Quality
from tests.bench.accuracy.worst import HOW_MANY, reason, worst


def why(case: Case, answer: Answer, notes: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the reason of one case."""
    return reason(scored_of(case, answer), {case.id: answer}, notes)


def test_the_worst_are_the_farthest_on_either_side() -> None:
    """By the absolute error, equal ones by name; a case without an answer is not among them."""
    rows = [erring(f"g/{index:02}", index / 100) for index in range(-15, 15)]

    found = worst([*rows, scored_of(case_of("g/none"))])

    assert len(found) == HOW_MANY
    assert [row.case.id for row in found[:3]] == ["g/-15", "g/-14", "g/14"]


@pytest.mark.parametrize(
    ("case", "answer", "expected"),
    [
        (case_of(unexpressed=("a tower",)), answer_of(), "the spec cannot say: a tower"),
        (
            case_of(quality=Quality.BANDED),
            answer_of(),
            "banded: shapes vary in the run, or the meter or the card is a guess",
        ),
        (
            case_of(spec={"runtime": {"cudnnBenchmark": True}}),
            answer_of(workspace=1),
            "cudnn.benchmark chose the convolutions while the job ran",
        ),
        (
            case_of(version="1.8.1+cu111"),
            answer_of(workspace=1),
            "its cuDNN is older than any that can be asked",
        ),
        (
            case_of(),
            answer_of(assumed=("kernel-workspace runtime.cudnn: bounded by mechanism",)),
            "scratch of its convolutions is bounded by mechanism",
        ),
        (case_of(), answer_of(method="formula"), "estimated by formula"),
        (case_of(), answer_of(unknown=("feature",)), "not modelled: feature"),
        (case_of(), answer_of(), "not explained"),
    ],
)
def test_a_reason_is_read_off_the_case_and_the_estimate(
    case: Case, answer: Answer, expected: str
) -> None:
    """Each doubt there is about a case is named."""
    assert why(case, answer) == expected


def test_a_part_that_is_assumed_is_named_if_it_could_be_the_error() -> None:
    """The context is 60 of 100 and assumed: it may explain 40 missing, and not 200."""
    answer = answer_of(context=60, assumed=("context frameworkVersion: 2.4",))

    assert why(case_of(nbytes=140), answer) == "context, assumed, is 60 % of the estimate"
    assert why(case_of(nbytes=300), answer) == "not explained"


def test_a_reason_found_by_hand_comes_first() -> None:
    """And spares the guess from the breakdown."""
    answer = answer_of(context=60, assumed=("context frameworkVersion: 2.4",))

    assert why(case_of(nbytes=140), answer, {"group/case": "read by hand"}) == "read by hand"
