"""An arena holds every value, and is no larger than XLA's rule makes it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from estimator.compilers.packing import Value, live_peak, packed

LIVES = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=1000),
        st.integers(min_value=0, max_value=20),
        st.integers(min_value=0, max_value=20),
    ).map(lambda each: (each[0], min(each[1:]), max(each[1:]))),
    max_size=30,
)


@given(LIVES)
def test_an_arena_is_between_the_live_peak_and_the_sum(values: list[Value]) -> None:
    """Nothing overlaps, and nothing is placed above what all of it would take."""
    assert live_peak(values) <= packed(values) <= sum(size for size, _, _ in values)


def test_a_value_takes_the_smallest_hole_that_holds_it() -> None:
    """Two values that never meet share a place; a third does not fit between them."""
    values = [(100, 0, 1), (60, 2, 3), (40, 2, 3), (50, 0, 3)]

    assert packed(values) == 100 + 50


def test_values_of_one_moment_are_side_by_side() -> None:
    """What is alive at once adds up."""
    assert live_peak([(3, 0, 0), (4, 0, 1), (5, 1, 1)]) == 4 + 5
