"""What holds for every sequence of requests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.allocators.caching import CachingAllocator
from estimator.allocators.expandable import ExpandableAllocator
from estimator.allocators.pytorch import pytorch_allocator
from estimator.allocators.settings import CachingSettings
from estimator.trace import FIRST_PRIVATE_POOL
from estimator.units import KIB, MIB, round_up
from tests.estimator.allocators.reference import SlowAllocator

SIZES = st.one_of(
    st.integers(min_value=1, max_value=MIB),
    st.integers(min_value=MIB, max_value=12 * MIB),
    st.sampled_from([512, 64 * KIB, MIB, 3 * MIB, 10 * MIB, 19 * MIB, 32 * MIB, 100 * MIB]),
)
POOLS = (0, 1, FIRST_PRIVATE_POOL, FIRST_PRIVATE_POOL + 1)


def requests_in(
    pools: Sequence[int], kinds: str = "aaaaaffffue"
) -> st.SearchStrategy[list[Request]]:
    """Return lists of allocations, frees, uses and emptyings of the cache in some pools."""
    return st.lists(
        st.tuples(st.sampled_from(kinds), SIZES, st.sampled_from(pools), st.integers(0, 1000)),
        max_size=80,
    )


Request = tuple[str, int, int, int]
REQUESTS = requests_in(POOLS)
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
    for pool in POOLS:
        allocator.release_pool(pool)
    allocator.empty_cache()

    assert (allocator.allocated, allocator.reserved) == (0, 0)
    assert list(allocator.blocks()) == []


@given(requests_in(POOLS[:2]), st.sampled_from([None, 64 * MIB, 120 * MIB]))
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


@given(requests_in(POOLS, "aaaaaffffe"), OPTIONS)
@settings(max_examples=100, deadline=None)
def test_pools_never_lend(requests: list[Request], options: CachingSettings) -> None:
    """Without a cap the whole is the sum of its pools, each of which could be alone."""
    chosen: list[tuple[str, int, int]] = []
    live: list[tuple[int, int]] = []
    for tensor, (kind, _, pool, pick) in enumerate(requests):
        if kind == "a":
            live.append((tensor, pool))
            chosen.append(("a", tensor, pool))
        elif kind == "e":
            chosen.append(("e", 0, -1))
        elif live:
            chosen.append(("f", *live.pop(pick % len(live))))
    sizes = {tensor: request[1] for tensor, request in enumerate(requests)}

    def played(pools: Sequence[int]) -> CachingAllocator:
        allocator = pytorch_allocator(options)
        for kind, tensor, pool in chosen:
            if kind == "e":
                allocator.empty_cache()
            elif pool in pools:
                if kind == "a":
                    allocator.allocate(tensor, sizes[tensor], pool)
                else:
                    allocator.free(tensor)
        return allocator

    alone = [played([pool]) for pool in POOLS]
    together = played(POOLS)

    assert together.reserved == sum(each.reserved for each in alone)
    assert together.allocated == sum(each.allocated for each in alone)


@given(requests_in(POOLS), OPTIONS)
@settings(max_examples=100, deadline=None)
def test_a_living_graphs_pool_never_shrinks(
    requests: list[Request], options: CachingSettings
) -> None:
    """Whatever is freed, what graphs hold stays reserved until they are released."""
    requests = [(kind, nbytes, FIRST_PRIVATE_POOL, pick) for kind, nbytes, _, pick in requests]
    most = 0
    for end in range(len(requests) + 1):
        allocator = pytorch_allocator(options, capacity=200 * MIB, allowed=200 * MIB)
        drive(allocator, requests[:end])
        assert allocator.reserved >= most
        most = allocator.reserved


@given(requests_in(POOLS), st.sampled_from([40 * MIB, 64 * MIB, 200 * MIB]))
@settings(max_examples=100, deadline=None)
def test_pages_exceed_a_process_cap_by_less_than_one(requests: list[Request], cap: int) -> None:
    """PyTorch checks the request in 2 MiB steps and maps pages of 20."""
    allocator = ExpandableAllocator(allowed=cap)
    drive(allocator, requests)

    assert allocator.reserved < round_up(cap, 2 * MIB) + 20 * MIB
