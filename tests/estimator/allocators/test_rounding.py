"""Block and segment sizes of PyTorch's caching allocator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.allocators.rounding import block_size, segment_size
from estimator.units import GIB, KIB, MIB


@pytest.mark.parametrize(
    ("nbytes", "expected"),
    [(1, 512), (512, 512), (513, 2 * 512), (MIB, MIB), (MIB + 1, MIB + 512)],
)
def test_blocks_are_multiples_of_512(nbytes: int, expected: int) -> None:
    """Every request rounds up to 512 bytes."""
    assert block_size(nbytes) == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 512, 12 * MIB),
        (33 * MIB, 34 * MIB),
    ],
)
def test_segments_come_in_three_classes(block: int, expected: int) -> None:
    """Small blocks share 2 MiB, middle ones 20 MiB, large ones stand alone in 2 MiB steps."""
    assert segment_size(block) == expected


def test_large_segment_size_serves_the_middle_class_only() -> None:
    """The option moves segments of requests between 1 and 10 MiB."""
    assert segment_size(MIB + 512, 64 * MIB) == 64 * MIB
    assert segment_size(10 * MIB, 64 * MIB) == 10 * MIB


def test_divisions_round_to_fractions_of_a_power_of_two() -> None:
    """Four divisions between 1,024 and 2,048 KiB are 256 KiB apart."""
    four = (4,) * 16

    assert block_size(1200 * KIB, four) == 1024 * KIB + 256 * KIB
    assert block_size(1024 * KIB, four) == 1024 * KIB
    assert block_size(1793 * KIB, four) == 2048 * KIB


def test_divisions_leave_small_requests_alone() -> None:
    """A step below 512 bytes is no step: 512 x divisions and less round as ever."""
    four = (4,) * 16

    assert block_size(4 * 512, four) == 4 * 512
    assert block_size(1500, four) == 3 * 512
    assert block_size(2049, four) == 2048 + 512


def test_each_interval_has_its_own_divisions() -> None:
    """256 MiB and above use the entry of their interval, 64 GiB the last one."""
    divisions = (0,) * 8 + (1, 2) + (0,) * 5 + (2,)

    assert block_size(300 * MIB, divisions) == 300 * MIB
    assert block_size(520 * MIB, divisions) == 512 * MIB + 256 * MIB
    assert block_size(65 * GIB, divisions) == 64 * GIB + 32 * GIB


@given(st.integers(min_value=1, max_value=80 * GIB), st.sampled_from([0, 1, 2, 4, 8, 16]))
def test_rounding_never_shrinks_and_keeps_512(nbytes: int, count: int) -> None:
    """Whatever the divisions, a block holds the request and is a multiple of 512 bytes."""
    size = block_size(nbytes, (count,) * 16)

    assert size >= nbytes
    assert size % 512 == 0
    assert size <= 2 * max(nbytes, 512)
