"""TensorFlow's BFC allocator: rounding, splitting, regions. Against the real one: see frontends."""

from __future__ import annotations

import pytest

from estimator.allocators.bfc import BfcAllocator, BfcSettings
from estimator.units import GIB, MIB

GROWING = BfcSettings(allow_growth=True)


def test_requests_round_to_256_bytes() -> None:
    """What is in use is whole chunks."""
    allocator = BfcAllocator(GROWING)

    assert allocator.allocate(0, 1)
    assert allocator.allocate(1, 257)

    assert allocator.allocated == 256 + 512


def test_a_pool_without_a_limit_holds_any_tensor() -> None:
    """One of 2^60 bytes is no tensor that was not there."""
    allocator = BfcAllocator(BfcSettings(allow_growth=False))

    assert allocator.allocate(0, 1 << 60)
    assert allocator.allocated == 1 << 60


def test_a_tensor_of_no_bytes_holds_nothing() -> None:
    """It is alive and may be freed."""
    allocator = BfcAllocator(GROWING)

    assert allocator.allocate(0, 0)
    allocator.free(0)

    assert (allocator.allocated, allocator.reserved) == (0, 0)


def test_regions_double_as_the_pool_grows() -> None:
    """2 MiB first; each later region is twice the last, or as often doubled as a request needs."""
    allocator = BfcAllocator(GROWING)
    seen = []
    for tensor, nbytes in enumerate([1 * MIB, 3 * MIB, 5 * MIB, 30 * MIB]):
        allocator.allocate(tensor, nbytes)
        seen.append(allocator.reserved // MIB)

    assert seen == [2, 2 + 4, 2 + 4 + 8, 2 + 4 + 8 + 32]


@pytest.mark.parametrize(("request_mib", "in_use"), [(60, 100), (50, 50), (40, 40)])
def test_a_chunk_is_split_only_if_half_of_it_is_left(request_mib: int, in_use: int) -> None:
    """A rest smaller than the request, and than 128 MiB, stays with its chunk."""
    allocator = BfcAllocator(BfcSettings(allow_growth=True, first_region=100 * MIB))

    allocator.allocate(0, request_mib * MIB)

    assert allocator.allocated == in_use * MIB


def test_a_rest_of_128_mib_is_always_split_off() -> None:
    """However large the request."""
    allocator = BfcAllocator(BfcSettings(allow_growth=True, first_region=1000 * MIB))

    allocator.allocate(0, 872 * MIB)
    first = allocator.allocated
    allocator.free(0)
    allocator.allocate(1, 873 * MIB)

    assert (first, allocator.allocated) == (872 * MIB, 1000 * MIB)


def test_the_smallest_chunk_that_serves_is_taken() -> None:
    """Best fit, whatever was freed last."""
    allocator = BfcAllocator(GROWING)
    for tensor, nbytes in enumerate([64, 4096, 64, 1024, 64, 2048, 64]):
        allocator.allocate(tensor, nbytes)
    for tensor in (1, 3, 5):
        allocator.free(tensor)

    allocator.allocate(7, 1000)

    sizes = {size for _, size, is_free in allocator.chunks() if is_free}
    assert {4096, 2048} <= sizes
    assert 1024 not in sizes


def test_free_neighbours_merge() -> None:
    """A region whose tensors are all gone is one chunk again."""
    allocator = BfcAllocator(GROWING)
    for tensor in range(5):
        allocator.allocate(tensor, 1000)
    for tensor in (1, 3, 2, 0, 4):
        allocator.free(tensor)

    assert [size for _, size, _ in allocator.chunks()] == [2 * MIB]


def test_regions_never_merge() -> None:
    """Two free regions do not serve one request together."""
    allocator = BfcAllocator(GROWING, capacity=6 * MIB)
    allocator.allocate(0, 2 * MIB)
    allocator.allocate(1, 4 * MIB)
    allocator.free(0)
    allocator.free(1)

    assert allocator.allocate(2, 4 * MIB)
    assert not allocator.allocate(3, 3 * MIB)


def test_a_region_the_driver_refuses_shrinks_by_tenths() -> None:
    """The pool takes what it can get, as long as it serves the request."""
    allocator = BfcAllocator(
        BfcSettings(allow_growth=True, first_region=100 * MIB), capacity=80 * MIB
    )

    assert allocator.allocate(0, 10 * MIB)

    assert 72 * MIB < allocator.reserved <= 80 * MIB


def test_free_regions_go_back_before_a_request_fails() -> None:
    """Only if garbage is collected, which it is by default."""
    for collects in (True, False):
        settings = BfcSettings(allow_growth=True, garbage_collection=collects)
        allocator = BfcAllocator(settings, limit=10 * MIB)
        for tensor, nbytes in enumerate([2 * MIB, 4 * MIB]):
            allocator.allocate(tensor, nbytes)
            allocator.free(tensor)

        assert allocator.allocate(9, 8 * MIB) is collects


def test_a_limit_holds_for_all_regions_together() -> None:
    """The last region is what the limit leaves."""
    allocator = BfcAllocator(GROWING, limit=5 * MIB)

    assert allocator.allocate(0, 2 * MIB)
    assert allocator.allocate(1, 2 * MIB)
    assert allocator.reserved == 5 * MIB
    assert not allocator.allocate(2, 2 * MIB)


def test_a_pool_that_does_not_grow_shows_how_much_of_it_was_used() -> None:
    """What it takes at the start says nothing of the need."""
    allocator = BfcAllocator(BfcSettings(), limit=40 * GIB)

    allocator.allocate(0, 3 * MIB)
    allocator.allocate(1, 5 * MIB)
    allocator.free(0)
    allocator.allocate(2, 1 * MIB)

    assert allocator.reserved == 8 * MIB
    assert allocator.allocated == 6 * MIB


def test_a_pool_that_does_not_grow_refuses_what_is_beyond_it() -> None:
    """One region, the smaller of its limit and what the driver has."""
    allocator = BfcAllocator(BfcSettings(), limit=40 * MIB, capacity=8 * MIB)

    assert allocator.allocate(0, 6 * MIB)
    assert not allocator.allocate(1, 6 * MIB)
