"""Every rule of the allocator, on a trace made by hand."""

from __future__ import annotations

import pytest

from tests.estimator.allocators.cases import CASES
from tests.estimator.allocators.traces import Case, ours


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_trace_leaves_the_segments_its_rule_says(case: Case) -> None:
    """Answers, segments, the most reserved and the retries are those derived by hand."""
    events = tuple(case.flat)

    outcome = ours(
        iter(events), settings=case.settings, capacity=case.capacity, allowed=case.allowed
    )

    assert outcome.answers == tuple(each.fits for each in events if each.verb == "alloc")
    assert outcome.segments == case.segments
    assert max(reserved for reserved, _ in outcome.books) == case.most
    assert outcome.retries == case.retries


def test_no_two_cases_have_the_same_rule() -> None:
    """A rule is named once."""
    assert len({case.rule for case in CASES}) == len(CASES)
