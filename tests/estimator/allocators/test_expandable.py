"""Expandable segments, one rule at a time."""

from __future__ import annotations

from estimator.allocators.expandable import ExpandableAllocator
from estimator.allocators.pytorch import pytorch_allocator
from estimator.allocators.settings import CachingSettings
from estimator.units import KIB, MIB


def filled(*sizes: int) -> ExpandableAllocator:
    """Return an allocator that holds tensors 0, 1, … of these sizes."""
    allocator = ExpandableAllocator()
    for tensor, nbytes in enumerate(sizes):
        assert allocator.allocate(tensor, nbytes)
    return allocator


def test_large_tensors_map_pages_of_20_mib() -> None:
    """33 MiB map two pages, the next 7 MiB fit what is left of them."""
    allocator = filled(33 * MIB)
    assert allocator.reserved == 2 * 20 * MIB

    allocator.allocate(1, 7 * MIB)
    assert allocator.reserved == 2 * 20 * MIB
    assert allocator.allocated == 33 * MIB + 7 * MIB


def test_small_tensors_map_pages_of_2_mib() -> None:
    """Three tensors of 1 MiB map two pages of one range."""
    assert filled(MIB, MIB, MIB).reserved == 2 * 2 * MIB


def test_any_rest_of_512_bytes_is_split_off() -> None:
    """No megabyte is lost inside large blocks."""
    assert filled(19 * MIB + 512).allocated == 19 * MIB + 512


def test_a_new_tensor_grows_over_the_free_end() -> None:
    """Freed 20 MiB at the end plus one new page serve 40 MiB."""
    allocator = filled(20 * MIB, 20 * MIB)
    allocator.free(1)
    allocator.allocate(2, 40 * MIB)

    assert allocator.reserved == 3 * 20 * MIB


def test_holes_are_filled_before_the_end_grows() -> None:
    """A hole between live tensors is unmapped, then mapped again at the lowest address."""
    allocator = filled(40 * MIB, 40 * MIB, 40 * MIB)
    allocator.free(1)
    allocator.empty_cache()
    assert allocator.reserved == 2 * 40 * MIB

    allocator.allocate(3, 40 * MIB)
    addresses = [address for address, _, _ in allocator.blocks()]

    assert allocator.reserved == 3 * 40 * MIB
    assert addresses[2] - addresses[0] == 80 * MIB


def test_only_whole_pages_are_unmapped() -> None:
    """A free stretch from 10 to 50 MiB holds one whole page, from 20 to 40 MiB."""
    allocator = filled(10 * MIB, 40 * MIB, 10 * MIB)
    allocator.free(1)
    allocator.empty_cache()

    assert allocator.reserved == 3 * 20 * MIB - 20 * MIB


def test_emptying_a_free_range_returns_all_of_it() -> None:
    """Nothing live means nothing reserved."""
    allocator = filled(33 * MIB, KIB, 50 * MIB)
    for tensor in range(3):
        allocator.free(tensor)
    allocator.empty_cache()

    assert allocator.reserved == 0
    assert list(allocator.blocks()) == []


def test_rests_of_different_segments_join() -> None:
    """Of 60 MiB, 31 are live and 20 + 9 are free: 25 fit only where the free parts touch."""
    default = pytorch_allocator(CachingSettings(), capacity=80 * MIB)
    expandable = pytorch_allocator(CachingSettings(expandable_segments=True), capacity=80 * MIB)
    for allocator in (default, expandable):
        allocator.allocate(0, 30 * MIB)
        allocator.allocate(1, 30 * MIB)
        allocator.free(0)
        allocator.allocate(2, 10 * MIB)
        allocator.free(1)
        allocator.allocate(3, 21 * MIB)

    assert not default.allocate(4, 25 * MIB)
    assert expandable.allocate(4, 25 * MIB)
    assert expandable.reserved == 3 * 20 * MIB


def test_a_card_too_small_for_a_page_is_out_of_memory() -> None:
    """Memory is mapped page by page: 30 MiB need 40."""
    assert not ExpandableAllocator(capacity=39 * MIB).allocate(0, 30 * MIB)
    assert ExpandableAllocator(capacity=40 * MIB).allocate(0, 30 * MIB)


def test_the_memory_fraction_becomes_a_cap() -> None:
    """Half of 80 MiB refuses a second page of 40."""
    settings = CachingSettings(expandable_segments=True, memory_fraction=0.5)
    allocator = pytorch_allocator(settings, total=80 * MIB)

    assert allocator.allocate(0, 30 * MIB)
    assert not allocator.allocate(1, 20 * MIB)
    assert allocator.allowed == 40 * MIB
