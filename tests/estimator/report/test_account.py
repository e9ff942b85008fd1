"""An account: every dealing with the driver, why, and what the segments hold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.allocators.ledger import Cause, Dealing
from estimator.allocators.pytorch import pytorch_allocator
from estimator.allocators.settings import CachingSettings
from estimator.allocators.watched import WatchedAllocator, watched_allocator
from estimator.program import Program
from estimator.replay import replay
from estimator.report.account import account_of, picture_at
from estimator.report.records import Account, Row, Segment, Sum
from estimator.result import Moment
from estimator.trace import EventKind, Phase, Role, TraceBuilder
from estimator.units import MIB
from tests.estimator.report.programs import CAPS, OPTIONS, programs, recorded


def maker(
    options: CachingSettings | None = None, *, cap: int | None = None, allowed: int | None = None
) -> Callable[[], WatchedAllocator]:
    """Return what makes fresh watched allocators."""
    return lambda: watched_allocator(options or CachingSettings(), capacity=cap, allowed=allowed)


def account(record: Callable[[TraceBuilder], object], *, cap: int | None = None) -> Account:
    """Return the account of what *record* does under the default settings."""
    return account_of(recorded(record), maker(cap=cap))


def outlined(found: Account) -> list[tuple[str, int, str | None]]:
    """Return action, MiB and cause of every row."""
    return [(row.action, row.bytes // MIB, row.cause) for row in found.rows]


def test_a_taking_says_where_for_what_and_why() -> None:
    """30 MiB after a free 12 MiB block: a segment of 30 MiB, because 12 is too small."""

    def record(builder: TraceBuilder) -> None:
        builder.free(builder.alloc(12 * MIB, Role.INPUT))
        builder.at(step=1, phase=Phase.FORWARD, operator="aten.mm", module="layer")
        builder.alloc(30 * MIB - 100, Role.ACTIVATION)

    found = account(record)

    assert found.rows[1] == Row(
        event=2,
        at=Moment(step=1, phase="forward", operator="aten.mm", module="layer"),
        action="segment",
        bytes=30 * MIB,
        reserved_bytes=12 * MIB + 30 * MIB,
        allocated_bytes=30 * MIB,
        live_bytes=30 * MIB - 100,
        lost_bytes=100,
        cached_bytes=12 * MIB,
        role="activations",
        request_bytes=30 * MIB - 100,
        block_bytes=30 * MIB,
        pool="large",
        stream=0,
        segment=2,
        cause="too-small",
        largest_cached_bytes=12 * MIB,
        pool_cached_bytes=12 * MIB,
    )


def test_what_a_cached_block_serves_is_no_row() -> None:
    """The second 12 MiB live where the first did."""

    def record(builder: TraceBuilder) -> None:
        builder.free(builder.alloc(12 * MIB, Role.INPUT))
        builder.alloc(12 * MIB, Role.ACTIVATION)

    assert outlined(account(record)) == [("segment", 12, "nothing-cached")]


def test_free_blocks_that_are_enough_together_are_scattered() -> None:
    """Two free segments of 12 MiB do not serve 20."""

    def record(builder: TraceBuilder) -> None:
        first, second = (builder.alloc(12 * MIB, Role.INPUT) for _ in range(2))
        builder.free(first)
        builder.free(second)
        builder.alloc(20 * MIB, Role.ACTIVATION)

    found = account(record)

    assert outlined(found)[-1] == ("segment", 20, "scattered")
    assert found.rows[-1].pool_cached_bytes == 2 * 12 * MIB


def test_pools_and_streams_do_not_lend() -> None:
    """A free block of 12 MiB serves neither a small tensor nor another stream."""

    def record(builder: TraceBuilder) -> None:
        builder.free(builder.alloc(12 * MIB, Role.INPUT))
        builder.alloc(1, Role.OPTIMIZER)
        builder.alloc(12 * MIB, Role.ACTIVATION, stream=1)

    assert outlined(account(record))[1:] == [
        ("segment", 2, "other-pool"),
        ("segment", 12, "other-stream"),
    ]


def test_a_dead_block_may_wait_for_a_second_stream() -> None:
    """It is cached and cannot serve: the picture says that it waits."""

    def record(builder: TraceBuilder) -> None:
        first = builder.alloc(12 * MIB, Role.INPUT)
        builder.use(first)
        builder.free(first)
        builder.alloc(12 * MIB, Role.ACTIVATION)

    found = account(record)

    assert outlined(found)[1] == ("segment", 12, "waiting")
    assert [each.waiting_bytes for each in found.last.segments] == [12 * MIB, 0]


def test_blocks_that_may_not_be_split_are_named() -> None:
    """With `max_split_size_mb:32` a free 64 MiB block does not serve 12 MiB."""

    def record(builder: TraceBuilder) -> None:
        builder.free(builder.alloc(64 * MIB, Role.INPUT))
        builder.alloc(12 * MIB, Role.ACTIVATION)

    options = CachingSettings(max_split_size=32 * MIB)
    found = account_of(recorded(record), maker(options))

    assert outlined(found)[1] == ("segment", 12, "max-split")


def test_a_retry_gives_back_before_it_takes() -> None:
    """Under 40 MiB the second 30 need the cached first 30: two rows for one request."""

    def record(builder: TraceBuilder) -> None:
        builder.free(builder.alloc(30 * MIB, Role.INPUT))
        builder.alloc(38 * MIB, Role.ACTIVATION)

    found = account(record, cap=40 * MIB)

    assert outlined(found)[1:] == [("retry", -30, None), ("segment", 38, "too-small")]
    assert [row.role for row in found.rows] == ["inputs", "activations", "activations"]


def test_an_emptied_cache_is_a_row_of_its_own() -> None:
    """The second of two emptyings gives 12 MiB back; the first had nothing to give."""

    def record(builder: TraceBuilder) -> None:
        builder.empty_cache()
        builder.free(builder.alloc(12 * MIB, Role.INPUT))
        builder.at(step=1, phase=Phase.EVALUATION, operator="", module="")
        builder.empty_cache()

    found = account(record)

    assert outlined(found)[1] == ("empty-cache", -12, None)
    assert (found.rows[1].event, found.rows[1].at.phase) == (3, "evaluation")
    assert found.sums == (
        Sum(step=0, phase="load", role="inputs", reason="nothing-cached", count=1, bytes=12 * MIB),
        Sum(step=1, phase="evaluation", reason="empty-cache", count=1, bytes=-12 * MIB),
    )


def test_expandable_segments_grow_by_pages() -> None:
    """5 MiB map one page of 20, 30 more map another in the same segment."""

    def record(builder: TraceBuilder) -> None:
        builder.alloc(5 * MIB, Role.INPUT)
        builder.alloc(30 * MIB, Role.ACTIVATION)

    found = account_of(recorded(record), maker(CachingSettings(expandable_segments=True)))

    assert outlined(found) == [("pages", 20, "nothing-cached"), ("pages", 20, "too-small")]
    assert len({row.segment for row in found.rows}) == 1


def test_the_picture_shows_each_segment() -> None:
    """31 MiB and a byte in 32: a rest of up to 1 MiB stays with the block."""

    def record(builder: TraceBuilder) -> None:
        builder.alloc(31 * MIB + 1, Role.ACTIVATION)
        builder.alloc(3 * MIB, Role.PARAMETER)

    found = account(record)

    assert found.last.segments == (
        Segment(
            number=1,
            pool="large",
            stream=0,
            event=0,
            bytes=32 * MIB,
            live={"activations": 31 * MIB + 1},
            rounding_bytes=511,
            rest_bytes=MIB - 512,
            cached_bytes=0,
            largest_cached_bytes=0,
            waiting_bytes=0,
        ),
        Segment(
            number=2,
            pool="large",
            stream=0,
            event=1,
            bytes=20 * MIB,
            live={"parameters": 3 * MIB},
            rounding_bytes=0,
            rest_bytes=0,
            cached_bytes=17 * MIB,
            largest_cached_bytes=17 * MIB,
            waiting_bytes=0,
        ),
    )


def test_the_two_pictures_are_of_the_two_peaks() -> None:
    """Most is alive at the first event, the last memory is taken at the third."""

    def record(builder: TraceBuilder) -> None:
        builder.free(builder.alloc(64 * MIB, Role.ACTIVATION))
        builder.alloc(1, Role.OPTIMIZER)

    found = account(record)

    assert (found.fullest.event, found.last.event) == (0, 2)
    assert found.fullest.live() == {"activations": 64 * MIB}
    assert found.last.live() == {"optimizer": 1}


def test_a_run_that_dies_is_accounted_for_until_then() -> None:
    """20 of 40 MiB are there."""

    def record(builder: TraceBuilder) -> None:
        builder.alloc(20 * MIB, Role.PARAMETER)
        builder.alloc(40 * MIB, Role.ACTIVATION)

    found = account(record, cap=40 * MIB)

    assert not found.completed
    assert outlined(found) == [("segment", 20, "nothing-cached")]


def test_an_empty_program_has_an_empty_account() -> None:
    """Nothing was taken, nothing is held."""
    found = account_of(recorded(TraceBuilder.build), maker())

    assert (found.rows, found.last.segments, found.reserved_bytes) == ((), (), 0)


@given(programs(), OPTIONS, CAPS)
@settings(max_examples=150, deadline=None)
def test_every_row_balances(program: Program, options: CachingSettings, cap: int | None) -> None:
    """Segment bytes sum to reserved, and live + cached + lost are reserved, at every row."""
    found = account_of(program, maker(options, cap=cap, allowed=cap))

    totals = list(accumulate(row.bytes for row in found.rows))
    assert totals == [row.reserved_bytes for row in found.rows]
    for row in found.rows:
        parts = (row.live_bytes, row.cached_bytes, row.lost_bytes)
        assert sum(parts) == row.reserved_bytes
        assert min(parts) >= 0
    assert sum(each.bytes for each in found.sums) == sum(row.bytes for row in found.rows)
    assert sum(each.count for each in found.sums) == len(found.rows)


@given(programs(), OPTIONS, CAPS)
@settings(max_examples=100, deadline=None)
def test_the_account_is_that_of_the_estimates_run(
    program: Program, options: CachingSettings, cap: int | None
) -> None:
    """The peaks, and whether it completes, are those of the allocator nobody watches."""
    run = replay(program, pytorch_allocator(options, capacity=cap, allowed=cap))

    found = account_of(program, maker(options, cap=cap, allowed=cap))

    assert found.completed == run.completed
    assert (found.allocated_bytes, found.reserved_bytes) == (run.allocated, run.reserved)
    assert max((row.reserved_bytes for row in found.rows), default=0) == run.reserved
    assert (found.fullest.event, found.last.event) == (run.allocated_event, run.reserved_event)


@given(programs(), OPTIONS, st.integers(0, 79))
@settings(max_examples=100, deadline=None)
def test_a_picture_holds_what_is_alive(
    program: Program, options: CachingSettings, event: int
) -> None:
    """By role it is what the events say; the parts of each segment are its bytes."""
    alive: dict[int, int] = {}
    for kind, tensor in zip(program.kinds[: event + 1], program.ids, strict=False):
        if kind == EventKind.ALLOC:
            alive[tensor] = program.sizes[tensor]
        elif kind == EventKind.FREE:
            del alive[tensor]
    allocator = watched_allocator(options)

    found = picture_at(program, allocator, event=event)

    assert sum(found.live().values()) == sum(alive.values())
    assert sum(each.bytes for each in found.segments) == allocator.reserved
    for each in found.segments:
        lost = each.rounding_bytes + each.rest_bytes
        assert each.live_bytes() + lost + each.cached_bytes + each.waiting_bytes == each.bytes
        assert min(each.rounding_bytes, each.rest_bytes, each.waiting_bytes) >= 0


@given(programs(), OPTIONS, CAPS)
@settings(max_examples=100, deadline=None)
def test_a_taking_is_never_for_want_of_looking(
    program: Program, options: CachingSettings, cap: int | None
) -> None:
    """No free block of the request's pool was large enough, unless splitting was forbidden."""
    found = account_of(program, maker(options, cap=cap, allowed=cap))

    for row in found.rows:
        if row.action in (Dealing.SEGMENT, Dealing.PAGES):
            assert row.role is not None
            if row.cause != Cause.MAX_SPLIT:
                assert row.largest_cached_bytes < row.block_bytes
            if row.cause == Cause.SCATTERED:
                assert row.pool_cached_bytes >= row.block_bytes
            if row.cause == Cause.TOO_SMALL:
                assert 0 < row.pool_cached_bytes < row.block_bytes
