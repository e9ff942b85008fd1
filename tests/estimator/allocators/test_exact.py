"""The allocator that wastes nothing."""

from __future__ import annotations

from estimator.allocators.exact import ExactAllocator


def test_live_bytes_are_counted_unrounded() -> None:
    """Allocated and reserved are the sum of live tensors."""
    allocator = ExactAllocator()
    allocator.allocate(0, 100)
    allocator.allocate(1, 41)
    allocator.free(0)

    assert allocator.allocated == allocator.reserved == 41


def test_a_capacity_is_exact() -> None:
    """The byte too many is refused."""
    allocator = ExactAllocator(capacity=100)

    assert allocator.allocate(0, 100)
    assert not allocator.allocate(1, 1)
