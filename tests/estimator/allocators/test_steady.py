"""What an allocator was given and refused says under which other capacities it does the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.allocators.caching import CachingAllocator
from estimator.allocators.expandable import ExpandableAllocator
from estimator.units import MIB

KINDS = (CachingAllocator, ExpandableAllocator)
STEPS = st.lists(
    st.tuples(st.booleans(), st.integers(1, 48 * MIB), st.integers(0, 1000)), max_size=40
)


def history(allocator: CachingAllocator, steps: list[tuple[bool, int, int]]) -> list[object]:
    """Return what *allocator* said and held after each of *steps*."""
    live: list[int] = []
    seen: list[object] = []
    for tensor, (is_free, nbytes, pick) in enumerate(steps):
        if is_free and live:
            allocator.free(live.pop(pick % len(live)))
            given_it = True
        else:
            given_it = allocator.allocate(tensor, nbytes)
            live += [tensor] if given_it else []
        seen.append((given_it, allocator.allocated, allocator.reserved))
    return seen


@given(STEPS, st.integers(1, 400), st.sampled_from(KINDS))
@settings(max_examples=80, deadline=None)
def test_the_same_happens_under_every_capacity_of_the_range(
    steps: list[tuple[bool, int, int]], capacity: int, kind: type[CachingAllocator]
) -> None:
    """At both ends of the range; its own capacity is within it."""
    allocator = kind(capacity=capacity * MIB)
    found = history(allocator, steps)

    alike = allocator.alike
    assert capacity * MIB in alike
    for end in (alike[0], alike[-1]):
        assert history(kind(capacity=end), steps) == found


@pytest.mark.parametrize("kind", KINDS)
def test_beyond_the_range_something_else_happens(kind: type[CachingAllocator]) -> None:
    """40 MiB are given and 60 more refused: 100 would have been enough, 39 too few."""
    steps = [(False, 40 * MIB, 0), (False, 60 * MIB, 0)]
    allocator = kind(capacity=64 * MIB)
    found = history(allocator, steps)

    assert allocator.alike == range(40 * MIB, 100 * MIB)
    assert history(kind(capacity=100 * MIB), steps) != found
    assert history(kind(capacity=40 * MIB - 1), steps) != found
