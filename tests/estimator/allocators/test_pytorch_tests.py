"""What PyTorch's own tests, documents and issues expect, in numbers.

Sources, re-expressed:
* `test_cuda.py`: pytorch/pytorch test/test_cuda.py as kept in
  DustyL/pytorch@023bca658e631f9d3c25f94844aae4535e724ec1.
* `AllocatorConfig_test.cpp`: pytorch/pytorch c10/test/core/AllocatorConfig_test.cpp.
* issues and pull requests of pytorch/pytorch and vllm-project/vllm by number.
"""

from __future__ import annotations

import pytest

from estimator.allocators.caching import CachingAllocator
from estimator.allocators.pytorch import pytorch_allocator
from estimator.allocators.rounding import block_size
from estimator.allocators.settings import CachingSettings, caching_settings
from estimator.trace import FIRST_PRIVATE_POOL
from estimator.units import GIB, KIB, MIB

GRAPH = FIRST_PRIVATE_POOL


def settings_of(text: str) -> CachingSettings:
    """Return the options of a text PyTorch accepts."""
    settings, unknowns = caching_settings({"PYTORCH_CUDA_ALLOC_CONF": text})
    assert unknowns == ()
    return settings


def allocated_for(nbytes: int, text: str) -> int:
    """Return the bytes that are allocated for one tensor under some options."""
    allocator = pytorch_allocator(settings_of(text))
    allocator.allocate(0, nbytes)
    return allocator.allocated


def captured(nbytes: int, text: str = "") -> CachingAllocator:
    """Return an allocator after a graph of `b = a.clone()` and five `b = b.clone() + 1`.

    Of the graph only the last *b*, tensor 10, is alive. A sum needs the clone and its result.
    """
    allocator = pytorch_allocator(settings_of(text))
    assert allocator.allocate(0, nbytes, GRAPH)
    last = 0
    for step in range(5):
        clone, total = 2 * step + 1, 2 * step + 2
        assert allocator.allocate(clone, nbytes, GRAPH)
        assert allocator.allocate(total, nbytes, GRAPH)
        allocator.free(clone)
        allocator.free(last)
        last = total
    return allocator


CAPTURES = [
    (512, 2 * MIB, 2 * MIB),
    (MIB, 2 * 2 * MIB, 2 * MIB),
    (MIB + 512, 20 * MIB, 20 * MIB),
    (10 * MIB - 512, 2 * 20 * MIB, 20 * MIB),
    (10 * MIB + 512, 3 * 12 * MIB, 12 * MIB),
]


@pytest.mark.parametrize(("nbytes", "kept", "left"), CAPTURES)
def test_a_graph_keeps_its_pool_until_it_is_deleted(nbytes: int, kept: int, left: int) -> None:
    """The pool holds its most before and after empty_cache, and the output's segment at last.

    Source: `test_graph_memory_stats_and_use_result_after_destroy_graph` of `test_cuda.py`.
    """
    allocator = captured(nbytes)
    assert allocator.reserved == kept
    assert allocator.allocated == nbytes

    allocator.empty_cache()
    assert allocator.reserved == kept

    allocator.release_pool(GRAPH)
    allocator.empty_cache()
    assert allocator.reserved == left
    assert allocator.allocated == nbytes


@pytest.mark.parametrize(
    ("nbytes", "kept"), [(10 * MIB - 512, 2 * 20 * MIB), (10 * MIB + 512, 2 * 20 * MIB)]
)
def test_an_expandable_graph_keeps_two_pages(nbytes: int, kept: int) -> None:
    """With expandable segments three blocks of about 10 MiB need two pages of 20.

    Source: the same test, for `expandable_segments`.
    """
    allocator = captured(nbytes, "expandable_segments:True")
    allocator.empty_cache()

    assert allocator.reserved == kept


def test_half_the_card_twice_is_too_much_and_fits_again_after_a_free() -> None:
    """A card of 16 GiB less a context holds 8 GiB once.

    Source: `test_out_of_memory_retry` of `test_cuda.py`.
    """
    allocator = CachingAllocator(capacity=16 * GIB - 300 * MIB)

    assert allocator.allocate(0, 8 * GIB)
    assert not allocator.allocate(1, 8 * GIB)
    allocator.free(0)
    assert allocator.allocate(1, 8 * GIB)


def test_a_fraction_of_a_half_serves_0_499_and_refuses_0_5() -> None:
    """A tensor of 4 KiB lives beside, as in PyTorch's test.

    Source: `test_set_per_process_memory_fraction` of `test_cuda.py`.
    """
    total = 16 * GIB
    allocator = pytorch_allocator(CachingSettings(memory_fraction=0.5), total=total)
    assert allocator.allocate(0, 4 * KIB)

    assert allocator.allocate(1, int(total * 0.499) - allocator.reserved)
    allocator.free(1)
    assert not allocator.allocate(2, int(total * 0.5))


def test_an_allocation_of_a_pebibyte_is_refused_with_and_without_max_split() -> None:
    """The release of oversize blocks finds nothing and harms nothing.

    Source: `test_raises_oom` of `test_cuda.py`.
    """
    for text in ("", "max_split_size_mb:1024"):
        assert not pytorch_allocator(settings_of(text), capacity=16 * GIB).allocate(0, 1 << 50)


@pytest.mark.parametrize(
    ("nbytes", "text", "expected"),
    [
        (84 * MIB, "", 84 * MIB),
        (84 * MIB, "roundup_power2_divisions:4", 64 * MIB + 2 * 16 * MIB),
        (84 * MIB, "garbage_collection_threshold:0.5,max_split_size_mb:70", 84 * MIB),
        (
            84 * MIB,
            "garbage_collection_threshold:0.5,"
            "roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]",
            64 * MIB + 3 * 8 * MIB,
        ),
        (
            400 * MIB,
            "roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]",
            256 * MIB + 2 * 128 * MIB,
        ),
        (268 * MIB, "roundup_power2_divisions:[128:1,256:0,512:4]", 268 * MIB),
        (520 * MIB, "roundup_power2_divisions:[128:1,256:0,512:4]", 512 * MIB + 128 * MIB),
        (4 * 21 * 125 * 125, "roundup_power2_divisions:1", 1312768),
    ],
)
def test_rounding_to_divisions(nbytes: int, text: str, expected: int) -> None:
    """21 Mi, 100 Mi, 67 Mi and 130 Mi floats land on the step PyTorch's test computes.

    The last is a multiple of 512: 2,564 of them hold 1,312,500 bytes.
    Source: `test_allocator_settings` of `test_cuda.py`; the last three from
    `test_roundup_power2_divisions_*` of Cambricon/torch_mlu's copy of it.
    """
    assert allocated_for(nbytes, text) == expected


def test_the_example_of_the_source_rounds_1200_to_1280() -> None:
    """Four divisions between 1,024 and 2,048; in KiB, where 512-byte blocks do not interfere.

    Source: the comment of `roundup_power2_next_division` and pytorch/pytorch#74213.
    """
    assert block_size(1200 * KIB, (4,) * 16) == 1280 * KIB


def test_the_options_of_the_config_test_arrive() -> None:
    """Each interval has its own divisions, `>` begins above the last one.

    Source: `allocator_config_test` of `AllocatorConfig_test.cpp`.
    """
    settings = settings_of(
        "max_split_size_mb:40,max_non_split_rounding_mb:30,garbage_collection_threshold:0.5,"
        "roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1],expandable_segments:True,"
        "pinned_use_background_threads:True"
    )

    assert settings == CachingSettings(
        max_split_size=40 * MIB,
        max_non_split_rounding=30 * MIB,
        garbage_collection_threshold=0.5,
        roundup_divisions=(8,) * 7 + (2, 4, 2, 4) + (1,) * 5,
        expandable_segments=True,
    )


@pytest.mark.parametrize("text", ["foo:1,bar:2", "garbage_collection_threshold:1.2"])
def test_what_the_settings_test_expects_to_raise_is_an_unknown(text: str) -> None:
    """An option nobody knows and a threshold over 1 are named, as is a limit of 2 MiB.

    Source: `test_allocator_settings` of `test_cuda.py`.
    """
    assert caching_settings({"PYTORCH_CUDA_ALLOC_CONF": text})[1]
    assert caching_settings({"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:2"})[1]


@pytest.mark.parametrize("text", ["", "expandable_segments:True"])
def test_three_times_40_mib_fill_120_and_then_120_fit_at_once(text: str) -> None:
    """A fourth is refused; after all three are dropped, one of 120 MiB empties the cache.

    Source: `test_max_split_expandable` of `test_cuda.py`, which mixes both kinds of segments.
    """
    settings = settings_of(f"{text},max_split_size_mb:40".lstrip(","))
    allocator = pytorch_allocator(settings, allowed=120 * MIB)
    for tensor in range(3):
        assert allocator.allocate(tensor, 40 * MIB)
    assert not allocator.allocate(3, 40 * MIB)

    for tensor in range(3):
        allocator.free(tensor)
    assert allocator.allocate(4, 120 * MIB)
    assert allocator.reserved == 120 * MIB


def test_80_mib_after_two_of_40_make_garbage() -> None:
    """Of 120 allowed MiB 80 are cached, over half: both go before the 80 MiB come.

    Source: `test_garbage_collect_expandable` of `test_cuda.py`, its ordinary half twice.
    """
    settings = settings_of("garbage_collection_threshold:0.5")
    allocator = pytorch_allocator(settings, allowed=120 * MIB)
    for tensor in range(2):
        assert allocator.allocate(tensor, 40 * MIB)
    for tensor in range(2):
        allocator.free(tensor)

    assert allocator.allocate(2, 80 * MIB)
    assert allocator.reserved == 80 * MIB
    assert allocator.num_retries == 0


def test_blocks_that_wait_for_a_stream_are_freed_when_memory_is_short() -> None:
    """A hundred times 160 MiB through a second stream fit a card of 1 GiB.

    Source: `test_caching_allocator_record_stream_oom` of `test_cuda.py`.
    """
    allocator = CachingAllocator(capacity=GIB)
    assert allocator.allocate(0, 160 * MIB, 1)
    for tensor in range(1, 101):
        assert allocator.allocate(tensor, 160 * MIB)
        allocator.use(tensor)
        allocator.free(tensor)


def test_two_pools_of_40_mib_leave_nothing_of_80_to_others() -> None:
    """The ordinary pool is refused 40 MiB, even after both tensors died in their pools.

    Source: `test_mempool_limited_memory_with_allocator` of `test_cuda.py`, without `use_on_oom`.
    """
    allocator = CachingAllocator(allowed=80 * MIB)
    assert allocator.allocate(0, 40 * MIB, GRAPH)
    assert allocator.allocate(1, 40 * MIB, GRAPH + 1)
    assert not allocator.allocate(2, 40 * MIB)

    allocator.free(0)
    allocator.free(1)
    assert not allocator.allocate(2, 40 * MIB)


def test_ten_rounds_of_three_tensors_leave_four_segments_in_a_graphs_pool() -> None:
    """One for the graph's own output of 16 bytes, three for 20 + 20 MiB and their sum.

    Source: `test_allocate_in_thread_to_pool` of PyTorch's test/inductor/test_cudagraph_trees.py.
    """
    allocator = CachingAllocator()
    assert allocator.allocate(0, 16, GRAPH)
    for first in range(1, 31, 3):
        tensors = range(first, first + 3)
        for tensor in tensors:
            assert allocator.allocate(tensor, 20 * MIB, GRAPH)
        for tensor in tensors:
            allocator.free(tensor)
    assert allocator.num_segments_opened == 4
    assert allocator.reserved == 2 * MIB + 3 * 20 * MIB

    allocator.free(0)
    allocator.release_pool(GRAPH)
    allocator.empty_cache()
    assert allocator.reserved == 0


@pytest.mark.parametrize(("text", "fragment"), [("", 260 * MIB), ("max_split_size_mb:20", 0)])
def test_a_cached_530_mib_segment_is_pinned_by_270_mib(text: str, fragment: int) -> None:
    """Without max_split_size_mb 260 MiB are stuck beside a weight of 270; with 20 none are.

    Source: vllm-project/vllm#41268.
    """
    allocator = pytorch_allocator(settings_of(text))
    allocator.allocate(0, 530 * MIB)
    allocator.free(0)
    allocator.allocate(1, 270 * MIB)
    allocator.empty_cache()

    assert allocator.reserved - allocator.allocated == fragment


def test_a_cached_1024_mib_block_serves_500_only_if_near_is_said_to_be_wide() -> None:
    """With max_split_size_mb 400 and two divisions, 500 MiB are 512 and 512 + 20 < 1,024.

    Source: pytorch/pytorch#136174.
    """
    narrow = "max_split_size_mb:400,roundup_power2_divisions:2"
    for text, expected in (
        (narrow, 1024 * MIB + 512 * MIB),
        (f"{narrow},max_non_split_rounding_mb:513", 1024 * MIB),
    ):
        allocator = pytorch_allocator(settings_of(text))
        allocator.allocate(0, 1024 * MIB)
        allocator.free(0)
        allocator.allocate(1, 500 * MIB)

        assert allocator.reserved == expected


def test_a_capture_that_is_short_of_memory_frees_nothing_cached() -> None:
    """Freeing under capture would break it: the request is refused.

    Source: pytorch/pytorch#159594 and #187795.
    """
    allocator = CachingAllocator(CachingSettings(max_split_size=32 * MIB), capacity=64 * MIB)
    allocator.allocate(0, 40 * MIB)
    allocator.free(0)

    assert not allocator.allocate(1, 40 * MIB, GRAPH)
    assert allocator.reserved == 40 * MIB
    allocator.empty_cache()
    assert allocator.allocate(1, 40 * MIB, GRAPH)


def test_max_split_with_expandable_segments_never_frees_a_block_as_a_segment() -> None:
    """Blocks of 110 MiB up to the limit, beside a dead one of 550, run into an ordinary refusal.

    Source: pytorch/pytorch#123548.
    """
    settings = settings_of("max_split_size_mb:500,expandable_segments:True")
    allocator = pytorch_allocator(settings, capacity=2 * GIB)
    allocator.allocate(0, 550 * MIB)
    allocator.free(0)
    served = [allocator.allocate(tensor, 110 * MIB) for tensor in range(1, 30)]

    assert served == [True] * 18 + [False] * 11
    assert allocator.allocated == 18 * 110 * MIB
