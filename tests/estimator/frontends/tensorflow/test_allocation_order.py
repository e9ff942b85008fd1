"""The allocator's order from the lines of several threads, whatever their clocks say."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.allocators.bfc import BfcAllocator, BfcSettings
from tests.estimator.frontends.tensorflow.allocation_order import (
    Lines,
    NoOrderError,
    Record,
    change,
    in_order,
)


def seen_by_an_allocator(draws: Sequence[tuple[int, int, bool]]) -> list[Record]:
    """Return records in order, of threads that allocate, or free what any of them allocated."""
    allocator = BfcAllocator(BfcSettings(allow_growth=True))
    live: list[int] = []
    records: list[Record] = []
    for number, (thread, nbytes, is_free) in enumerate(draws):
        before = allocator.allocated
        if is_free and live:
            tensor = live.pop(nbytes % len(live))
            address = allocator.address_of(tensor)
            allocator.free(tensor)
        else:
            assert allocator.allocate(number, nbytes)
            live.append(number)
            address = allocator.address_of(number)
        record = {
            "is_free": allocator.allocated < before,
            "allocation_bytes": abs(allocator.allocated - before),
            "bytes_allocated": allocator.allocated,
            "addr": address,
            "thread": thread,
            "time": number,
        }
        records.append(record)
    return records


def in_lines(records: Sequence[Record]) -> list[list[Record]]:
    """Return *records* as each thread wrote them down."""
    threads = sorted({record["thread"] for record in records})
    return [[each for each in records if each["thread"] == thread] for thread in threads]


def with_clocks_off(lines: Lines, chance: random.Random) -> list[list[Record]]:
    """Return *lines* with times that say nothing of the order, some of them equal."""
    count = sum(len(line) for line in lines)
    return [[{**each, "time": chance.randrange(count)} for each in line] for line in lines]


def untimed(records: Sequence[Record]) -> list[Record]:
    """Return *records* without their times."""
    return [{key: value for key, value in each.items() if key != "time"} for each in records]


THREADS = st.tuples(st.integers(0, 2), st.integers(1, 5000), st.booleans())


@given(st.lists(THREADS, max_size=60))
def test_times_that_are_right_give_the_order_they_say(draws: list[tuple[int, int, bool]]) -> None:
    """The clock chooses between orders that hold."""
    records = seen_by_an_allocator(draws)

    assert in_order(in_lines(records)) == records


@given(st.lists(THREADS, max_size=60), st.randoms(use_true_random=False))
def test_wrong_times_still_give_an_order_an_allocator_could_have_seen(
    draws: list[tuple[int, int, bool]], chance: random.Random
) -> None:
    """Every record is there once, its line's order is kept, totals and addresses follow."""
    lines = with_clocks_off(in_lines(seen_by_an_allocator(draws)), chance)

    found = in_order(lines)

    assert in_lines(found) == [line for line in lines if line]
    total = 0
    in_use: set[int] = set()
    for record in found:
        total += change(record)
        assert record["bytes_allocated"] == total
        assert record["is_free"] == (record["addr"] in in_use)
        in_use ^= {record["addr"]}
    assert len(found) == len(draws)


@pytest.mark.parametrize("seed", range(20))
def test_lines_the_wrong_way_round_give_the_one_order_there_is(seed: int) -> None:
    """No two totals are equal here, so whatever the clocks say there is one order."""
    chance = random.Random(seed)
    sizes = [256 << number for number in range(12)]
    chance.shuffle(sizes)
    draws = [(chance.randrange(3), size, False) for size in sizes]
    records = seen_by_an_allocator(draws)

    found = in_order(with_clocks_off(in_lines(records), chance))

    assert untimed(found) == untimed(records)


def test_a_step_back_is_taken_where_two_records_fit_and_one_leads_nowhere() -> None:
    """Both threads may come first by their totals; after one of them the other cannot go on.

    One thread takes 256 bytes and gives them back; the other takes 256 of its own from the same
    total and keeps them, so it is second, although its time is earlier.
    """
    first = {"is_free": False, "allocation_bytes": 256, "bytes_allocated": 256, "addr": 0}
    second = {**first, "is_free": True, "bytes_allocated": 0}
    other = {**first}

    found = in_order([[{**first, "time": 5}, {**second, "time": 6}], [{**other, "time": 1}]])

    assert [each["time"] for each in found] == [5, 6, 1]


def test_an_address_in_use_is_not_given_out_again() -> None:
    """Totals alone would allow the free of one address before the other's."""
    records: list[Record] = [
        {"is_free": False, "allocation_bytes": 256, "bytes_allocated": 256, "addr": 0, "time": 0},
        {"is_free": True, "allocation_bytes": 256, "bytes_allocated": 0, "addr": 0, "time": 1},
        {"is_free": False, "allocation_bytes": 256, "bytes_allocated": 256, "addr": 0, "time": 0},
        {"is_free": True, "allocation_bytes": 256, "bytes_allocated": 0, "addr": 0, "time": 0},
        {"is_free": False, "allocation_bytes": 256, "bytes_allocated": 256, "addr": 512, "time": 9},
    ]

    found = in_order([[records[0], records[3]], [records[1]], [records[2], records[4]]])

    assert [each["addr"] for each in found] == [0, 0, 0, 0, 512]


def test_a_record_that_is_missing_is_said() -> None:
    """The total of the next one cannot be reached."""
    records = seen_by_an_allocator([(0, 256, False), (1, 512, False), (0, 1024, False)])
    lines = in_lines([records[0], records[2]])

    with pytest.raises(NoOrderError, match="after 1 of 2 records"):
        in_order(lines)


def test_records_from_the_middle_say_what_was_in_use_before() -> None:
    """The first total is not nothing, and what is freed need not have been seen to begin."""
    records = seen_by_an_allocator(
        [(0, 256, False), (1, 512, False), (0, 0, True), (1, 1024, False), (0, 2048, False)]
    )[2:]

    assert in_order(in_lines(records), begins_empty=False) == records
    with pytest.raises(NoOrderError, match="after 0 of 3 records"):
        in_order(in_lines(records))


def test_no_lines_give_no_records() -> None:
    """There is nothing to order."""
    assert in_order([[], []]) == []
