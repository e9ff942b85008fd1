"""PyTorch's caching allocator, one rule at a time."""

from __future__ import annotations

from estimator.allocators.caching import CachingAllocator
from estimator.allocators.settings import CachingSettings
from estimator.allocators.waiting import MAX_WAITING
from estimator.units import KIB, MIB


def filled(*sizes: int, capacity: int | None = None) -> CachingAllocator:
    """Return an allocator that holds tensors 0, 1, … of these sizes."""
    allocator = CachingAllocator(capacity=capacity)
    for tensor, nbytes in enumerate(sizes):
        assert allocator.allocate(tensor, nbytes)
    return allocator


def test_segments_of_any_size_lie_apart() -> None:
    """Tensors of 2^62 bytes are told apart when all are free: nothing overlaps."""
    allocator = filled(1 << 62, 1 << 62, 1 << 62)
    for tensor in range(3):
        allocator.free(tensor)

    assert (allocator.allocated, allocator.reserved) == (0, 3 << 62)


def test_small_tensors_share_a_segment() -> None:
    """Three tensors of at most 1 MiB use one 2 MiB segment."""
    allocator = filled(1, 513, MIB)

    assert allocator.allocated == 512 + 2 * 512 + MIB
    assert allocator.reserved == 2 * MIB


def test_the_small_pool_opens_a_second_segment_when_full() -> None:
    """2 MiB and one block need two segments."""
    assert filled(MIB, MIB, 1).reserved == 2 * MIB + 2 * MIB


def test_middle_tensors_share_20_mib() -> None:
    """9 + 9 MiB fit one 20 MiB segment, a third opens another."""
    assert filled(9 * MIB, 9 * MIB).reserved == 20 * MIB
    assert filled(9 * MIB, 9 * MIB, 9 * MIB).reserved == 20 * MIB + 20 * MIB


def test_pools_never_lend_to_each_other() -> None:
    """A free 20 MiB segment does not serve a small tensor."""
    allocator = filled(9 * MIB)
    allocator.free(0)

    assert allocator.allocate(1, KIB)
    assert allocator.reserved == 20 * MIB + 2 * MIB


def test_streams_never_lend_to_each_other() -> None:
    """The same size on another stream opens a segment of its own."""
    allocator = filled(30 * MIB)
    allocator.free(0)

    assert allocator.allocate(1, 30 * MIB, 1)
    assert allocator.reserved == 30 * MIB + 30 * MIB
    assert allocator.allocate(2, 30 * MIB, 0)
    assert allocator.reserved == 30 * MIB + 30 * MIB


def test_up_to_1_mib_is_lost_inside_a_large_block() -> None:
    """A rest of 1 MiB stays with its block, a larger one is split off."""
    kept = filled(31 * MIB)
    split = filled(31 * MIB - 512)

    assert kept.allocated == 32 * MIB
    assert split.allocated == 31 * MIB - 512
    assert kept.reserved == split.reserved == 32 * MIB


def test_a_freed_block_merges_with_both_neighbours() -> None:
    """Three 4 MiB blocks freed in any order become room for 12 MiB again."""
    allocator = filled(4 * MIB, 4 * MIB, 4 * MIB)
    for tensor in (0, 2, 1):
        allocator.free(tensor)

    assert allocator.allocate(3, 12 * MIB)
    assert allocator.reserved == 20 * MIB
    assert next(iter(allocator.blocks()))[1:] == (12 * MIB, False)


def test_the_smallest_block_that_fits_is_taken() -> None:
    """30 MiB goes into the 32 MiB block although the 64 MiB one is older."""
    allocator = filled(64 * MIB, 32 * MIB)
    allocator.free(0)
    allocator.free(1)

    assert allocator.allocate(2, 32 * MIB)
    assert allocator.allocate(3, 64 * MIB)
    assert allocator.reserved == 64 * MIB + 32 * MIB


def test_of_equal_blocks_the_lowest_address_is_taken() -> None:
    """The first of two equal segments is reused, so the second can be released."""
    allocator = filled(32 * MIB, 32 * MIB)
    allocator.free(1)
    allocator.free(0)
    allocator.allocate(2, 32 * MIB)
    first = next(iter(allocator.blocks()))

    assert first[1:] == (32 * MIB, False)


def test_empty_cache_keeps_segments_with_a_live_block() -> None:
    """One live block pins its 20 MiB, the free 32 MiB go back."""
    allocator = filled(4 * MIB, 4 * MIB, 32 * MIB)
    allocator.free(1)
    allocator.free(2)
    allocator.empty_cache()

    assert allocator.reserved == 20 * MIB


def test_memory_short_returns_cached_segments_first() -> None:
    """A cap of 64 MiB serves 40 MiB after the cached 32 MiB went back."""
    allocator = filled(32 * MIB, capacity=64 * MIB)
    allocator.free(0)

    assert allocator.allocate(1, 40 * MIB)
    assert allocator.reserved == 40 * MIB
    assert allocator.num_retries == 1


def test_out_of_memory_leaves_the_tensor_dead() -> None:
    """A refused tensor may be tried again with another size."""
    allocator = filled(40 * MIB, capacity=64 * MIB)

    assert not allocator.allocate(1, 40 * MIB)
    assert allocator.allocate(1, 24 * MIB)
    assert allocator.allocated == 40 * MIB + 24 * MIB


def test_a_process_cap_counts_like_the_card() -> None:
    """set_per_process_memory_fraction refuses what the card could still give."""
    assert not CachingAllocator(capacity=64 * MIB, allowed=32 * MIB).allocate(0, 40 * MIB)


def test_a_tensor_without_bytes_holds_nothing() -> None:
    """0 bytes are alive without a block."""
    allocator = filled(0)
    allocator.free(0)

    assert (allocator.allocated, allocator.reserved) == (0, 0)


def test_a_block_used_elsewhere_comes_back_late() -> None:
    """After free its bytes leave allocated, but its block is not reused before a sync."""
    allocator = filled(32 * MIB)
    allocator.use(0)
    allocator.free(0)
    assert allocator.allocated == 0

    allocator.allocate(1, 32 * MIB)
    assert allocator.reserved == 32 * MIB + 32 * MIB

    allocator.synchronize()
    allocator.allocate(2, 32 * MIB)
    assert allocator.reserved == 32 * MIB + 32 * MIB


def test_only_a_few_blocks_wait_for_a_second_stream() -> None:
    """When one more than MAX_WAITING wait, the oldest is reusable."""
    allocator = filled(*[32 * MIB] * (MAX_WAITING + 1))
    for tensor in range(MAX_WAITING + 1):
        allocator.use(tensor)
        allocator.free(tensor)
    before = allocator.reserved

    allocator.allocate(10, 32 * MIB)
    assert allocator.reserved == before
    allocator.allocate(11, 32 * MIB)
    assert allocator.reserved == before + 32 * MIB


def test_memory_short_waits_for_the_second_stream() -> None:
    """The last retry synchronises, so waiting blocks are released too."""
    allocator = filled(32 * MIB, capacity=40 * MIB)
    allocator.use(0)
    allocator.free(0)

    assert allocator.allocate(1, 40 * MIB)


def test_oversize_blocks_serve_only_oversize_requests() -> None:
    """With max_split_size_mb 64, a cached 128 MiB block is not split for 32 MiB."""
    allocator = CachingAllocator(CachingSettings(max_split_size=64 * MIB))
    allocator.allocate(0, 128 * MIB)
    allocator.free(0)

    allocator.allocate(1, 32 * MIB)
    assert allocator.reserved == 128 * MIB + 32 * MIB

    allocator.allocate(2, 120 * MIB)
    assert allocator.reserved == 128 * MIB + 32 * MIB
    assert allocator.allocated == 32 * MIB + 128 * MIB


def test_an_oversize_block_must_be_near_in_size() -> None:
    """A request takes an oversize block only if it is less than 20 MiB larger."""
    allocator = CachingAllocator(CachingSettings(max_split_size=64 * MIB))
    allocator.allocate(0, 128 * MIB)
    allocator.free(0)
    allocator.allocate(1, 108 * MIB)

    assert allocator.reserved == 128 * MIB + 108 * MIB


def test_memory_short_frees_one_oversize_block_before_all_others() -> None:
    """With max_split_size_mb the cached 160 MiB go back for 130 MiB, the cached 40 MiB stay."""
    allocator = CachingAllocator(CachingSettings(max_split_size=64 * MIB), capacity=300 * MIB)
    for tensor, nbytes in enumerate((160 * MIB, 100 * MIB, 40 * MIB)):
        allocator.allocate(tensor, nbytes)
    allocator.free(0)
    allocator.free(2)

    allocator.allocate(3, 130 * MIB)

    assert allocator.num_retries == 0
    assert allocator.reserved == 100 * MIB + 40 * MIB + 130 * MIB


def test_memory_short_frees_several_oversize_blocks_if_one_is_not_enough() -> None:
    """Two cached 80 MiB blocks go back for 150 MiB, the largest first."""
    allocator = CachingAllocator(CachingSettings(max_split_size=64 * MIB), capacity=200 * MIB)
    for tensor, nbytes in enumerate((80 * MIB, 80 * MIB, 40 * MIB)):
        allocator.allocate(tensor, nbytes)
    for tensor in range(3):
        allocator.free(tensor)

    allocator.allocate(3, 150 * MIB)

    assert allocator.num_retries == 0
    assert allocator.reserved == 40 * MIB + 150 * MIB


def test_garbage_collection_frees_old_segments_above_the_threshold() -> None:
    """Above 50 % of the allowed 200 MiB the segment cached longest goes before a new one comes."""
    settings = CachingSettings(garbage_collection_threshold=0.5)
    allocator = CachingAllocator(settings, allowed=200 * MIB)
    allocator.allocate(0, 64 * MIB)
    allocator.allocate(1, 48 * MIB)
    allocator.free(0)
    allocator.allocate(2, 1)
    allocator.free(1)

    allocator.allocate(3, 80 * MIB)

    assert allocator.reserved == 48 * MIB + 2 * MIB + 80 * MIB


def test_garbage_collection_needs_a_process_cap() -> None:
    """Without a fraction the threshold does nothing, as in PyTorch."""
    allocator = CachingAllocator(
        CachingSettings(garbage_collection_threshold=0.1), capacity=200 * MIB
    )
    allocator.allocate(0, 64 * MIB)
    allocator.free(0)
    allocator.allocate(1, 80 * MIB)

    assert allocator.reserved == 64 * MIB + 80 * MIB


def test_rounding_by_divisions_reaches_the_blocks() -> None:
    """33 MiB with two divisions is a 48 MiB block."""
    allocator = CachingAllocator(CachingSettings(roundup_divisions=(2,) * 16))
    allocator.allocate(0, 33 * MIB)

    assert allocator.allocated == allocator.reserved == 32 * MIB + 16 * MIB


def test_large_segment_size_reaches_the_segments() -> None:
    """Middle requests share segments of the size that was set."""
    allocator = CachingAllocator(CachingSettings(large_segment_size=64 * MIB))
    for tensor in range(6):
        allocator.allocate(tensor, 9 * MIB)

    assert allocator.reserved == 64 * MIB
