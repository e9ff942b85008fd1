"""What holds for every sequence of requests."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.allocators.caching import CachingAllocator
from estimator.allocators.expandable import ExpandableAllocator
from estimator.allocators.pytorch import pytorch_allocator
from estimator.allocators.settings import CachingSettings
from estimator.units import KIB, MIB
from tests.estimator.allocators.reference import SlowAllocator

SIZES = st.one_of(
    st.integers(min_value=1, max_value=MIB),
    st.integers(min_value=MIB, max_value=12 * MIB),
    st.sampled_from([512, 64 * KIB, MIB, 3 * MIB, 10 * MIB, 19 * MIB, 32 * MIB, 100 * MIB]),
)
REQUESTS = st.lists(
    st.tuples(st.sampled_from("aaaaaffffue"), SIZES, st.integers(0, 1), st.integers(0, 1000)),
    max_size=80,
)
Request = tuple[str, int, int, int]
OPTIONS = st.sampled_from(
    [
        CachingSettings(),
        CachingSettings(max_split_size=20 * MIB),
        CachingSettings(max_split_size=32 * MIB, max_non_split_rounding=64 * MIB),
        CachingSettings(roundup_divisions=(4,) * 16),
        CachingSettings(large_segment_size=64 * MIB),
        CachingSettings(garbage_collection_threshold=0.3),
        CachingSettings(expandable_segments=True),
        CachingSettings(expandable_segments=True, max_split_size=32 * MIB),
    ]
)


def drive(allocator: CachingAllocator | SlowAllocator, requests: list[Request]) -> dict[int, int]:
    """Play *requests* and return the live tensors and the bytes they asked for."""
    live: dict[int, int] = {}
    for tensor, (kind, nbytes, stream, pick) in enumerate(requests):
        if kind == "a":
            if allocator.allocate(tensor, nbytes, stream):
                live[tensor] = nbytes
        elif kind == "e":
            allocator.empty_cache()
        elif live:
            chosen = sorted(live)[pick % len(live)]
            if kind == "f":
                allocator.free(chosen)
                del live[chosen]
            elif isinstance(allocator, CachingAllocator):
                allocator.use(chosen)
    return live


@given(REQUESTS, OPTIONS, st.sampled_from([None, 64 * MIB, 200 * MIB]))
@settings(max_examples=150, deadline=None)
def test_books_balance(requests: list[Request], options: CachingSettings, cap: int | None) -> None:
    """live + slack + cached = reserved, blocks tile their segments, no cap is exceeded."""
    allocator = pytorch_allocator(options, capacity=cap, allowed=cap)
    live = drive(allocator, requests)
    blocks = sorted(allocator.blocks())
    cached = sum(size for _, size, is_free in blocks if is_free)
    waiting = sum(size for _, size, is_free in blocks if not is_free) - allocator.allocated
    slack = allocator.allocated - sum(live.values())

    assert sum(size for _, size, _ in blocks) == allocator.reserved
    assert sum(live.values()) + slack + cached + waiting == allocator.reserved
    assert slack >= 0
    assert waiting >= 0
    assert allocator.reserved >= allocator.allocated
    assert cap is None or allocator.reserved <= cap
    for (address, size, _), (following, _, _) in pairwise(blocks):
        assert address + size <= following


@given(REQUESTS, OPTIONS)
@settings(max_examples=100, deadline=None)
def test_free_neighbours_are_always_merged(
    requests: list[Request], options: CachingSettings
) -> None:
    """Two free blocks never touch."""
    allocator = pytorch_allocator(options)
    drive(allocator, requests)
    blocks = sorted(allocator.blocks())

    for (address, size, is_free), (following, _, next_is_free) in pairwise(blocks):
        assert not (is_free and next_is_free and address + size == following)


@given(REQUESTS, OPTIONS, st.sampled_from([None, 200 * MIB]))
@settings(max_examples=100, deadline=None)
def test_freeing_all_and_emptying_leaves_nothing(
    requests: list[Request], options: CachingSettings, cap: int | None
) -> None:
    """No segment is lost."""
    allocator = pytorch_allocator(options, capacity=cap, allowed=cap)
    for tensor in drive(allocator, requests):
        allocator.free(tensor)
    allocator.empty_cache()

    assert (allocator.allocated, allocator.reserved) == (0, 0)
    assert list(allocator.blocks()) == []


@given(REQUESTS, st.sampled_from([None, 64 * MIB, 120 * MIB]))
@settings(max_examples=200, deadline=None)
def test_the_fast_allocator_agrees_with_the_obvious_one(
    requests: list[Request], cap: int | None
) -> None:
    """Default settings: same answers, same bytes, at every step."""
    requests = [each for each in requests if each[0] != "u"]
    for end in (len(requests) // 2, len(requests)):
        fast, slow = CachingAllocator(capacity=cap), SlowAllocator(capacity=cap)

        assert drive(fast, requests[:end]) == drive(slow, requests[:end])
        assert (fast.allocated, fast.reserved) == (slow.allocated, slow.reserved)


@given(st.lists(SIZES, max_size=40), st.integers(0, 1))
@settings(deadline=None)
def test_expandable_segments_waste_less_than_a_page_while_nothing_is_freed(
    sizes: list[int], stream: int
) -> None:
    """Without frees, reserved is under allocated plus one page of each pool."""
    allocator = ExpandableAllocator()
    for tensor, nbytes in enumerate(sizes):
        allocator.allocate(tensor, nbytes, stream)

    assert allocator.reserved < allocator.allocated + 20 * MIB + 2 * MIB + 1
