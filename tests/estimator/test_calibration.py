"""From one figure to an interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.calibration import MARGINS, Bound, bounded
from estimator.result import Method


def test_margins_move_outwards_and_round_outwards() -> None:
    """1,001 less 3 % is 970.97, plus 5 % 1,051.05: both are rounded away from the figure."""
    assert bounded(1001, Method.TRACE, Bound.LEAST) == 970
    assert bounded(1001, Method.TRACE, Bound.ENOUGH) == 1052


def test_every_method_has_every_bound_with_a_reason() -> None:
    """No combination is missing, and each says what it rests on."""
    assert set(MARGINS) == {(method, bound) for method in Method for bound in Bound}
    assert all(margin.reason and margin.thousandths > 0 for margin in MARGINS.values())


@pytest.mark.parametrize("bound", list(Bound))
def test_a_formula_is_less_sure_than_a_trace(bound: Bound) -> None:
    """Its interval is wider on every side."""
    formula, trace = MARGINS[Method.FORMULA, bound], MARGINS[Method.TRACE, bound]

    assert formula.thousandths > trace.thousandths


@given(st.integers(min_value=0, max_value=1 << 40), st.sampled_from(list(Method)))
def test_the_interval_holds_the_figure(nbytes: int, method: Method) -> None:
    """least <= figure <= enough, most."""
    assert bounded(nbytes, method, Bound.LEAST) <= nbytes
    for bound in (Bound.ENOUGH, Bound.MOST_ALLOCATED, Bound.MOST_RESERVED):
        assert bounded(nbytes, method, bound) >= nbytes


@pytest.mark.parametrize("bound", list(Bound))
def test_a_release_that_was_taken_makes_the_interval_no_narrower(bound: Bound) -> None:
    """Least goes lower, the others higher, for every method."""
    for method in Method:
        told = bounded(1 << 30, method, bound)
        taken = bounded(1 << 30, method, bound, unstated=True)
        assert taken <= told if bound is Bound.LEAST else taken >= told


@pytest.mark.parametrize("bound", list(Bound))
def test_without_cudnns_answers_the_interval_is_no_narrower(bound: Bound) -> None:
    """Least goes lower, the others higher, for every method."""
    for method in Method:
        asked = bounded(1 << 30, method, bound)
        unasked = bounded(1 << 30, method, bound, unasked=True)
        assert unasked <= asked if bound is Bound.LEAST else unasked >= asked
