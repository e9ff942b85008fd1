"""MXNet's pools: exact sizes, rounding, the reserve, and one growing block of scratch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.allocators.mxnet_pool import MxnetPool, PoolKind, PoolPolicy, pool_policy
from estimator.trace import SCRATCH_STREAM
from estimator.units import MIB

PAGE = 4096
MODERN = (1, 9)


@pytest.mark.parametrize(
    ("nbytes", "rounded"),
    [
        (1, PAGE),
        (PAGE + 1, 2 * PAGE),
        (2 * MIB, 2 * MIB),
        (2 * MIB + 1, 4 * MIB),
        (5 * MIB, 6 * MIB),
    ],
)
def test_requests_are_rounded_to_pages_and_above_two_mib_to_two_mib(
    nbytes: int, rounded: int
) -> None:
    """The default pool rounds small requests to 4 KiB, large ones to 2 MiB."""
    assert PoolPolicy().rounded(nbytes) == rounded


@pytest.mark.parametrize(
    ("nbytes", "rounded"),
    [(1, PAGE), (5000, 8192), (16 * MIB, 16 * MIB), (17 * MIB, 32 * MIB), (33 * MIB, 48 * MIB)],
)
def test_the_rounded_pool_takes_powers_of_two_then_multiples(nbytes: int, rounded: int) -> None:
    """Up to 2^24 powers of two, above it multiples of that."""
    assert PoolPolicy(kind=PoolKind.ROUND).rounded(nbytes) == rounded


def test_a_freed_block_serves_only_its_own_size() -> None:
    """Nothing is split: a smaller request asks the driver, an equal one does not."""
    pool = MxnetPool()
    pool.allocate(0, 8 * MIB)
    pool.free(0)

    pool.allocate(1, 4 * MIB)
    assert (pool.allocated, pool.reserved) == (4 * MIB, 12 * MIB)

    pool.allocate(2, 8 * MIB - 5)
    assert (pool.allocated, pool.reserved) == (12 * MIB, 12 * MIB)


def test_an_unpooled_block_goes_back_at_once() -> None:
    """`Unpooled` keeps nothing and rounds nothing."""
    pool = MxnetPool(PoolPolicy(kind=PoolKind.UNPOOLED))
    pool.allocate(0, 5)
    pool.free(0)

    assert (pool.allocated, pool.reserved) == (0, 0)


def test_free_blocks_are_given_back_before_memory_is_short() -> None:
    """The pool keeps 5 % of the card free of cached blocks, and gives them all back at once."""
    pool = MxnetPool(capacity=100 * MIB)
    pool.allocate(0, 60 * MIB)
    pool.free(0)

    assert pool.allocate(1, 36 * MIB)
    assert pool.reserved == 36 * MIB


def test_the_reserve_may_be_used_up_by_live_blocks() -> None:
    """It is a reason to give back, not a limit."""
    pool = MxnetPool(capacity=100 * MIB)

    assert pool.allocate(0, 98 * MIB)
    assert not pool.allocate(1, 4 * MIB)
    assert pool.reserved == 98 * MIB


def test_scratch_is_one_block_that_only_grows() -> None:
    """A larger call replaces it, a smaller one lies in it, and it is never cached twice."""
    pool = MxnetPool()
    for tensor, nbytes in enumerate((4 * MIB, 10 * MIB, 6 * MIB)):
        pool.allocate(tensor, nbytes, SCRATCH_STREAM)
        pool.free(tensor)

    assert (pool.allocated, pool.reserved) == (0, 10 * MIB)


def test_scratch_counts_as_allocated_while_a_call_uses_it() -> None:
    """All of its block does, whatever the call asked for."""
    pool = MxnetPool()
    pool.allocate(0, 10 * MIB, SCRATCH_STREAM)
    pool.free(0)

    pool.allocate(1, 4 * MIB, SCRATCH_STREAM)

    assert (pool.allocated, pool.reserved) == (10 * MIB, 10 * MIB)


def test_scratch_that_does_not_fit_leaves_what_was_there() -> None:
    """A call that is refused may be made again with less."""
    pool = MxnetPool(capacity=20 * MIB)
    pool.allocate(0, 8 * MIB)
    pool.allocate(1, 4 * MIB, SCRATCH_STREAM)
    pool.free(1)

    assert not pool.allocate(2, 14 * MIB, SCRATCH_STREAM)
    assert pool.reserved == 12 * MIB
    assert pool.allocate(3, 12 * MIB, SCRATCH_STREAM)


def test_a_tensor_without_bytes_holds_no_block() -> None:
    """It is alive all the same."""
    pool = MxnetPool()

    assert pool.allocate(0, 0)
    pool.free(0)
    assert pool.reserved == 0


def test_the_environment_sets_the_pool_up() -> None:
    """Each variable reaches the policy."""
    policy, unknowns = pool_policy(
        {
            "MXNET_GPU_MEM_POOL_TYPE": "Round",
            "MXNET_GPU_MEM_POOL_PAGE_SIZE": "8192",
            "MXNET_GPU_MEM_POOL_RESERVE": "10",
            "MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF": "26",
            "MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE": "1048576",
        },
        version=MODERN,
    )

    assert unknowns == ()
    assert policy == PoolPolicy(
        kind=PoolKind.ROUND, page=8192, large=MIB, cutoff=26, reserve=10, rounds_pages=True
    )


def test_what_mxnet_would_not_take_is_named_and_left_out() -> None:
    """A value out of range leaves the default, and says so."""
    policy, unknowns = pool_policy(
        {"MXNET_GPU_MEM_POOL_TYPE": "Best", "MXNET_GPU_MEM_POOL_RESERVE": "200"}, version=MODERN
    )

    assert policy == PoolPolicy()
    assert {note.path for note in unknowns} == {
        "runtime.env.MXNET_GPU_MEM_POOL_TYPE",
        "runtime.env.MXNET_GPU_MEM_POOL_RESERVE",
    }


def test_releases_before_1_3_add_32_bytes() -> None:
    """They did not round: two requests of one size share a block, no others do."""
    policy, _ = pool_policy({}, version=(1, 2))

    assert policy.rounded(1000) == 1000 + 32


def ran(steps: list[tuple[bool, int, bool]], policy: PoolPolicy, capacity: int | None) -> MxnetPool:
    """Return a pool after *steps*: a tensor each; where one does not live on, the oldest dies.

    Raises:
        MemoryError: if a request is refused.
    """
    pool = MxnetPool(policy, capacity=capacity)
    alive: list[int] = []
    for tensor, (lives, nbytes, is_scratch) in enumerate(steps):
        stream = SCRATCH_STREAM if is_scratch else 0
        if not pool.allocate(tensor, nbytes, stream):
            raise MemoryError
        if is_scratch:
            pool.free(tensor)
            continue
        alive.append(tensor)
        if not lives:
            pool.free(alive.pop(0))
    return pool


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 9 * MIB), st.booleans()), max_size=30),
    st.sampled_from(PoolKind),
)
def test_the_edge_is_the_least_capacity_a_run_completes_under(
    steps: list[tuple[bool, int, bool]], kind: PoolKind
) -> None:
    """It holds the run, more does too, and a byte less does not."""
    policy = PoolPolicy(kind=kind)
    free = ran(steps, policy, None)

    for capacity in (free.edge, free.edge + 3 * MIB, 2 * free.edge):
        assert ran(steps, policy, capacity).edge == free.edge
    if free.edge:
        with pytest.raises(MemoryError):
            ran(steps, policy, free.edge - 1)
