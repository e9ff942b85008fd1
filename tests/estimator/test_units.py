"""Bytes and their text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from estimator.units import GIB, MIB, gib_down, gib_up, round_up


def test_needs_round_up_and_capacities_round_down() -> None:
    """A need never looks smaller, a capacity never larger, than it is."""
    assert gib_up(GIB + 1) == "1.1 GiB"
    assert gib_down(2 * GIB - 1) == "1.9 GiB"
    assert gib_up(3 * GIB) == gib_down(3 * GIB) == "3.0 GiB"


@given(st.integers(min_value=0, max_value=1 << 50), st.integers(min_value=1, max_value=MIB))
def test_round_up_gives_the_next_multiple(nbytes: int, step: int) -> None:
    """The result is a multiple, not below the value, and less than one step above it."""
    rounded = round_up(nbytes, step)

    assert rounded % step == 0
    assert nbytes <= rounded < nbytes + step
