"""When a probe holds and when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.kubelet.probes import Probe

PROBE = {"periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


@pytest.mark.parametrize(
    ("answers", "outcomes"),
    [
        ([True], [True]),
        ([False, False, False], [None, None, False]),
        ([True, False, False, True], [True, True, True, True]),
        ([True, False, False, False, True], [True, True, True, False, True]),
    ],
)
def test_outcome_changes_after_as_many_answers_in_a_row_as_asked(
    answers: list[bool], outcomes: list[bool | None]
) -> None:
    """One yes, or three times no."""
    replies = iter(answers)
    probe = Probe(PROBE, ask=lambda _: next(replies), now=0)

    assert list(turns(probe, len(answers))) == outcomes


def test_nobody_is_asked_before_the_time() -> None:
    """Not in the initial delay, and once a period after it."""
    asked: list[float] = []

    def ask(probe: Any) -> bool:
        asked.append(now)
        return True

    probe = Probe({**PROBE, "initialDelaySeconds": 3}, ask=ask, now=100)
    for now in (100.0, 102.9, 103.0, 104.0, 112.9, 113.0):
        probe.take_turn(now)

    assert asked == [103.0, 113.0]


def turns(probe: Probe, number: int) -> Iterator[bool | None]:
    """Yield the outcome after each of *number* periods."""
    for turn in range(number):
        probe.take_turn(10.0 * turn)
        yield probe.outcome
