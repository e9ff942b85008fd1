"""Replay: worst moments, choices under pressure, the search for the smallest cap."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.allocators.caching import CachingAllocator
from estimator.allocators.exact import ExactAllocator
from estimator.allocators.expandable import ExpandableAllocator
from estimator.allocators.protocol import Allocator
from estimator.errors import TraceError
from estimator.program import Program
from estimator.replay import Replay, replay, smallest_cap
from estimator.trace import Phase, Place, Role, TraceBuilder
from estimator.units import MIB


def recorded(
    record: Callable[[TraceBuilder], object], choices: dict[int, tuple[int, ...]] | None = None
) -> Program:
    """Return the program of what *record* does."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.13.0")
    record(builder)
    trace = builder.build()
    return Program(
        sizes=trace.sizes,
        roles=trace.roles,
        streams=trace.streams,
        kinds=trace.kinds,
        ids=trace.ids,
        places=trace.places,
        place_table=trace.place_table,
        choices=choices or {},
    )


def activation_and_gradient(builder: TraceBuilder) -> None:
    """A parameter, an activation, its gradient, and a gradient after the activation died."""
    builder.alloc(100, Role.PARAMETER)
    builder.at(step=1, phase=Phase.FORWARD, operator="aten.mm", module="layer")
    activation = builder.alloc(40, Role.ACTIVATION)
    builder.at(step=1, phase=Phase.BACKWARD, operator="aten.mm", module="layer")
    builder.alloc(40, Role.GRADIENT)
    builder.free(activation)
    builder.alloc(10, Role.GRADIENT)


def sized(**roles: int) -> dict[Role, int]:
    """Return bytes by role, zero where not named."""
    return {role: roles.get(role.name.lower(), 0) for role in Role}


def test_peak_is_before_the_first_free() -> None:
    """The peak counts an activation and its gradient while both are alive."""
    result = replay(recorded(activation_and_gradient), ExactAllocator())

    backward = Place(step=1, phase=Phase.BACKWARD, operator="aten.mm", module="layer")
    assert result == Replay(
        completed=True,
        allocated=100 + 40 + 40,
        reserved=100 + 40 + 40,
        live=sized(parameter=100, activation=40, gradient=40),
        allocated_event=2,
        reserved_event=2,
        allocated_at=backward,
        reserved_at=backward,
    )


def test_the_first_of_equal_peaks_is_kept() -> None:
    """A peak that is reached again, or held through an empty tensor, stays where it was."""

    def record(builder: TraceBuilder) -> None:
        first = builder.alloc(50, Role.INPUT)
        builder.alloc(0, Role.TEMPORARY)
        builder.free(first)
        builder.alloc(50, Role.ACTIVATION)

    result = replay(recorded(record), ExactAllocator())

    assert result.allocated_event == 0
    assert result.live == sized(input=50)


def test_live_bytes_are_block_sizes() -> None:
    """Roles sum to allocated: 512 for one byte, 32 MiB for 31.5 (up to 1 MiB is not split off)."""

    def record(builder: TraceBuilder) -> None:
        builder.alloc(1, Role.PARAMETER)
        builder.alloc(31 * MIB + MIB // 2, Role.ACTIVATION)

    result = replay(recorded(record), CachingAllocator())

    assert result.live == sized(parameter=512, activation=32 * MIB)
    assert result.allocated == sum(result.live.values())
    assert result.reserved == 2 * MIB + 32 * MIB


def test_reserved_is_placed_at_the_last_segment() -> None:
    """The peak of allocated and the last new segment can be far apart."""

    def record(builder: TraceBuilder) -> None:
        first = builder.alloc(64 * MIB, Role.ACTIVATION)
        builder.free(first)
        builder.at(step=2, phase=Phase.OPTIMIZER, operator="aten.add", module="")
        builder.alloc(1, Role.OPTIMIZER)

    result = replay(recorded(record), CachingAllocator())

    assert result.allocated == 64 * MIB
    assert result.allocated_event == 0
    assert result.reserved == 64 * MIB + 2 * MIB
    assert result.reserved_at == Place(
        step=2, phase=Phase.OPTIMIZER, operator="aten.add", module=""
    )


def test_a_failed_allocation_ends_the_replay() -> None:
    """Out of memory names the place and the request; the peaks are those until then."""
    result = replay(recorded(activation_and_gradient), ExactAllocator(capacity=150))

    assert not result.completed
    assert result.failed_at == Place(
        step=1, phase=Phase.BACKWARD, operator="aten.mm", module="layer"
    )
    assert result.failed_bytes == 40
    assert result.allocated == 100 + 40


def test_a_library_takes_its_next_plan() -> None:
    """Scratch of 60 does not fit beside 50 under 100, its third choice of 30 does."""

    def record(builder: TraceBuilder) -> None:
        builder.alloc(50, Role.ACTIVATION)
        builder.free(builder.alloc(60, Role.WORKSPACE))

    program = recorded(record, {1: (55, 30, 0)})
    result = replay(program, ExactAllocator(capacity=100))

    assert result.completed
    assert result.num_fallbacks == 2
    assert result.allocated == 50 + 30
    assert replay(program, ExactAllocator()).allocated == 50 + 60
    assert replay(program, ExactAllocator(capacity=50)).allocated == 50


def test_emptying_the_cache_returns_segments() -> None:
    """Without it 32 + 48 MiB stay reserved, with it 48."""

    def record(builder: TraceBuilder, *, empties: bool) -> None:
        builder.free(builder.alloc(32 * MIB, Role.ACTIVATION))
        if empties:
            builder.empty_cache()
        builder.alloc(48 * MIB, Role.ACTIVATION)

    kept = replay(recorded(lambda builder: record(builder, empties=False)), CachingAllocator())
    emptied = replay(recorded(lambda builder: record(builder, empties=True)), CachingAllocator())

    assert kept.reserved == 32 * MIB + 48 * MIB
    assert emptied.reserved == 48 * MIB


def test_a_step_ends_with_a_synchronisation() -> None:
    """A block used on a second stream is not reused in its step, but in the next."""

    def record(builder: TraceBuilder, step: int) -> None:
        builder.at(step=1, phase=Phase.FORWARD, operator="", module="")
        first = builder.alloc(32 * MIB, Role.COMMUNICATION)
        builder.use(first)
        builder.free(first)
        builder.at(step=step, phase=Phase.FORWARD, operator="", module="")
        builder.alloc(32 * MIB, Role.COMMUNICATION)

    same = replay(recorded(lambda builder: record(builder, 1)), CachingAllocator())
    following = replay(recorded(lambda builder: record(builder, 2)), CachingAllocator())

    assert same.reserved == 32 * MIB + 32 * MIB
    assert following.reserved == 32 * MIB


def capture(builder: TraceBuilder) -> int:
    """Capture a graph that takes 40 MiB for a moment; return its pool."""
    pool = builder.private_pool()
    builder.free(builder.alloc(40 * MIB, Role.ACTIVATION, stream=pool))
    return pool


def test_a_graphs_pool_is_not_given_back_under_a_cap() -> None:
    """The graph keeps its 40 MiB, so 30 more do not fit 64; without it they do."""

    def record(builder: TraceBuilder, *, captures: bool) -> None:
        if captures:
            capture(builder)
        builder.empty_cache()
        builder.alloc(30 * MIB, Role.ACTIVATION)

    graph = recorded(lambda builder: record(builder, captures=True))
    plain = recorded(lambda builder: record(builder, captures=False))

    for kind in (CachingAllocator, ExpandableAllocator):
        assert not replay(graph, kind(capacity=64 * MIB)).completed
        assert replay(plain, kind(capacity=64 * MIB)).completed
    assert replay(graph, CachingAllocator()).reserved == 40 * MIB + 30 * MIB


def test_the_pool_of_a_dead_graph_is_given_back() -> None:
    """After its release the 40 MiB make room for 30 under a cap of 64."""

    def record(builder: TraceBuilder) -> None:
        builder.release_pool(capture(builder))
        builder.alloc(30 * MIB, Role.ACTIVATION)

    result = replay(recorded(record), CachingAllocator(capacity=64 * MIB))

    assert result.completed
    assert result.reserved == 40 * MIB


def test_private_pools_are_numbered_and_run_out() -> None:
    """A stream is one byte: there are 128 private pools, and the next is our bug."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.13.0")
    pools = [builder.private_pool() for _ in range(128)]

    assert pools == list(range(128, 256))
    with pytest.raises(TraceError, match="128 private memory pools"):
        builder.private_pool()


def test_an_empty_program_needs_nothing() -> None:
    """No event, no place."""
    result = replay(recorded(lambda _: None), CachingAllocator())

    assert (result.completed, result.allocated, result.allocated_at) == (True, 0, None)


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ([0, 0], "allocated twice"),
        ([0, 1, 0], "allocated twice"),
        ([1], "freed but not alive"),
        ([0, 1, 1], "freed but not alive"),
        ([2], "used but not alive"),
        ([3], "cannot be replayed"),
    ],
)
def test_a_trace_that_breaks_the_rules_is_our_bug(kinds: list[int], message: str) -> None:
    """Double and dead tensors, and kernels that were not lowered, raise TraceError."""
    program = recorded(lambda builder: builder.alloc(1, Role.INPUT))
    broken = replace(
        program,
        kinds=bytes(kinds),
        ids=array("q", [0] * len(kinds)),
        places=array("q", [0] * len(kinds)),
    )

    with pytest.raises(TraceError, match=message):
        replay(broken, ExactAllocator())


def capped(kind: type[CachingAllocator]) -> Callable[[int | None], Allocator]:
    """Return what makes an allocator of *kind* under a cap."""
    return lambda cap: kind(capacity=cap)


def test_the_smallest_cap_is_less_than_a_free_run_takes() -> None:
    """A cached 32 MiB segment is given back for 64: 96 MiB reserved, 64 are enough."""

    def record(builder: TraceBuilder) -> None:
        builder.free(builder.alloc(32 * MIB, Role.ACTIVATION))
        builder.alloc(64 * MIB, Role.ACTIVATION)

    program = recorded(record)
    free = replay(program, CachingAllocator())
    cap = smallest_cap(program, capped(CachingAllocator), low=free.allocated, high=free.reserved)

    assert free.reserved == 32 * MIB + 64 * MIB
    assert cap == 64 * MIB


def test_the_search_takes_at_most_eight_replays() -> None:
    """However far apart its ends are."""
    caps: list[int | None] = []

    def make(cap: int | None) -> Allocator:
        caps.append(cap)
        return ExactAllocator(capacity=cap)

    program = recorded(lambda builder: builder.alloc(5 * MIB, Role.INPUT))
    cap = smallest_cap(program, make, low=0, high=1 << 40)

    assert len(caps) <= 8
    assert cap >= 5 * MIB


def test_the_neighbour_below_is_tried() -> None:
    """Where success is not monotone, a lower cap that completes next to the edge is the answer."""

    class Moody(ExactAllocator):
        """Refuses everything under caps from 40 to 60 MiB, and under 34 MiB."""

        def __init__(self, cap: int) -> None:
            super().__init__()
            self.refuses = 40 * MIB <= cap < 60 * MIB or cap < 34 * MIB

        def allocate(self, tensor: int, nbytes: int, stream: int = 0) -> bool:
            return not self.refuses and super().allocate(tensor, nbytes, stream)

    program = recorded(lambda builder: builder.alloc(1, Role.INPUT))

    def smallest(low: int, high: int) -> int:
        return smallest_cap(program, lambda cap: Moody(cap or 0), low=low, high=high)

    assert smallest(40 * MIB, 60 * MIB) == 60 * MIB
    assert smallest(40 * MIB, 42 * MIB) == 40 * MIB - 2 * MIB


STEPS = st.lists(
    st.tuples(st.booleans(), st.integers(1, 48 * MIB), st.integers(0, 1000)), max_size=60
)


def program_of(steps: list[tuple[bool, int, int]]) -> Program:
    """Return a program of random allocations and frees."""

    def record(builder: TraceBuilder) -> None:
        live: list[int] = []
        for is_free, nbytes, pick in steps:
            if is_free and live:
                builder.free(live.pop(pick % len(live)))
            else:
                live.append(builder.alloc(nbytes, Role(nbytes % len(Role))))

    return recorded(record)


@given(STEPS, st.sampled_from([CachingAllocator, ExpandableAllocator]))
@settings(max_examples=60, deadline=None)
def test_roles_sum_to_the_peak(
    steps: list[tuple[bool, int, int]], kind: type[CachingAllocator]
) -> None:
    """Whatever happens, the breakdown adds up and reserved covers allocated."""
    result = replay(program_of(steps), kind())

    assert sum(result.live.values()) == result.allocated
    assert result.reserved >= result.allocated


@given(STEPS, st.sampled_from([CachingAllocator, ExpandableAllocator]))
@settings(max_examples=60, deadline=None)
def test_the_smallest_cap_completes_and_lies_between_its_ends(
    steps: list[tuple[bool, int, int]], kind: type[CachingAllocator]
) -> None:
    """The cap found completes, is no less than exact need and no more than a free run takes."""
    program = program_of(steps)
    free = replay(program, kind())
    exact = replay(program, ExactAllocator()).allocated
    if free.reserved == 0:
        return
    cap = smallest_cap(program, capped(kind), low=exact, high=free.reserved)

    assert replay(program, kind(capacity=cap)).completed
    assert exact <= cap <= free.reserved


class Opaque:
    """An allocator that does not say under which other caps it would do the same."""

    def __init__(self, inner: Allocator) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@given(STEPS, st.sampled_from([CachingAllocator, ExpandableAllocator]))
@settings(max_examples=60, deadline=None)
def test_caps_known_from_other_replays_change_no_answer(
    steps: list[tuple[bool, int, int]], kind: type[CachingAllocator]
) -> None:
    """The search finds what it finds when every cap is replayed, with no more replays."""
    program = program_of(steps)
    high = replay(program, kind()).reserved
    made: list[int | None] = []

    def make(cap: int | None) -> Allocator:
        made.append(cap)
        return kind(capacity=cap)

    found = smallest_cap(program, make, low=0, high=high)
    num_replays = len(made)
    exhaustive = smallest_cap(
        program, lambda cap: cast("Allocator", Opaque(make(cap))), low=0, high=high
    )

    assert found == exhaustive
    assert num_replays <= len(made) - num_replays


def test_caps_that_one_replay_answers_for_are_not_replayed() -> None:
    """One tensor of 512 MiB: a cap completes or fails, and two replays say so of all caps."""
    made: list[int | None] = []

    def make(cap: int | None) -> Allocator:
        made.append(cap)
        return CachingAllocator(capacity=cap)

    program = recorded(lambda builder: builder.alloc(512 * MIB, Role.INPUT))

    assert smallest_cap(program, make, low=0, high=2048 * MIB) == 512 * MIB
    assert len(made) == 2


def test_a_cap_that_fails_above_one_that_completes_is_rare() -> None:
    """Of 60 random programs at most 6 have one, and it is at most 64 MiB above.

    Not never: a smaller cap empties the cache earlier, and blocks can then lie better.
    """
    gaps = []
    for seed in range(60):
        chance = random.Random(seed)
        sizes = [chance.randint(1, 12 * MIB) for _ in range(6)]
        sizes += [chance.randint(12 * MIB, 60 * MIB) for _ in range(6)]
        steps = [
            (chance.random() < 0.47, chance.choice(sizes), chance.randrange(1000))
            for _ in range(100)
        ]
        program = program_of(steps)
        free = replay(program, CachingAllocator())
        caps = range(free.allocated // MIB * MIB, free.reserved + 1, 2 * MIB)
        fates = [replay(program, CachingAllocator(capacity=cap)).completed for cap in caps]
        fails_last = max((n for n, fits in enumerate(fates) if not fits), default=0)
        gaps.append(fails_last - fates.index(True) if True in fates else 0)

    assert sum(gap > 0 for gap in gaps) <= 6
    assert max(gaps) * 2 <= 64


@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_freeing_earlier_never_raises_the_exact_peak(steps: list[tuple[bool, int, int]]) -> None:
    """A program whose tensors all die at once needs no more than one that keeps them."""

    def record(builder: TraceBuilder, *, early: bool) -> None:
        live = []
        for _, nbytes, _ in steps:
            live.append(builder.alloc(nbytes, Role.TEMPORARY))
            if early:
                builder.free(live.pop())

    early = replay(recorded(lambda builder: record(builder, early=True)), ExactAllocator())
    late = replay(recorded(lambda builder: record(builder, early=False)), ExactAllocator())

    assert early.allocated <= late.allocated
