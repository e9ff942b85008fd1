"""Replay a program against an allocator and remember its worst moments.

    Program, Allocator -> Replay

Constant work an event. Pure: no framework, no GPU, no clock, no environment variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from estimator.allocators.protocol import Allocator
from estimator.allocators.steady import Steady
from estimator.errors import TraceError
from estimator.program import Program
from estimator.trace import EventKind, Place, Role
from estimator.units import MIB, round_up

ALLOC, FREE, USE, EMPTY_CACHE, RELEASE_POOL = (
    EventKind.ALLOC.value,
    EventKind.FREE.value,
    EventKind.USE.value,
    EventKind.EMPTY_CACHE.value,
    EventKind.RELEASE_POOL.value,
)
NEW, ALIVE, DEAD = 0, 1, 2
MAX_REPLAYS = 8
CAP_STEP = 2 * MIB
CAP_SHARE = 400
"""The search under a cap stops at the larger of 2 MiB and 1/400 of the cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a program did to an allocator."""

    completed: bool
    """False if an allocation failed after every retry; the peaks are those until then."""
    allocated: int
    """Peak bytes of live blocks."""
    reserved: int
    """Peak bytes taken from the driver."""
    live: Mapping[Role, int]
    """Block bytes by role at the first moment of most allocated; they sum to `allocated`."""
    allocated_event: int
    """Index of the event that first reached `allocated`; 0 in an empty program."""
    reserved_event: int
    """Index of the event that last raised `reserved`."""
    allocated_at: Place | None
    reserved_at: Place | None
    failed_at: Place | None = None
    failed_bytes: int = 0
    """The request that failed, unrounded, its smallest choice."""
    num_fallbacks: int = 0
    """Times a library had to take another of its choices for a scratch tensor."""
    edge: int | None = None
    """The least capacity under which the program completes, if the allocator can tell of a run
    whose scratch tensors have no other choices."""


def replay(program: Program, allocator: Allocator) -> Replay:
    """Return what *program* does to a fresh *allocator*.

    A scratch tensor that is refused is tried again with its next choice, as a library takes
    its next plan. Blocks that wait for a second stream come back at the end of each step.

    Raises:
        TraceError: if a tensor is allocated twice, or freed or used while not alive.
    """
    return _Run(program, allocator).result()


class _Run:
    """One replay: counters, and the snapshot of the worst moment."""

    def __init__(self, program: Program, allocator: Allocator) -> None:
        self.program = program
        self.allocator = allocator
        self.state = bytearray(len(program.sizes))
        self.blocks = [0] * len(program.sizes)
        self.live = [0] * len(Role)
        self.peak = 0
        self.peak_live = [0] * len(Role)
        self.peak_event = 0
        self.reserved = 0
        self.reserved_event = 0
        self.num_fallbacks = 0
        self.failed_event: int | None = None
        self.failed_bytes = 0

    def result(self) -> Replay:
        """Run the program and return what happened."""
        self.run()
        return Replay(
            completed=self.failed_event is None,
            allocated=self.peak,
            reserved=self.reserved,
            live={role: self.peak_live[role] for role in Role},
            allocated_event=self.peak_event,
            reserved_event=self.reserved_event,
            allocated_at=self.place(self.peak_event),
            reserved_at=self.place(self.reserved_event),
            failed_at=None if self.failed_event is None else self.place(self.failed_event),
            failed_bytes=self.failed_bytes,
            num_fallbacks=self.num_fallbacks,
            edge=None if self.program.choices else getattr(self.allocator, "edge", None),
        )

    def place(self, event: int) -> Place | None:
        """Return where *event* happens, None in an empty program."""
        places = self.program.places
        return self.program.place_table[places[event]] if event < len(places) else None

    def run(self) -> None:
        """Drive the allocator through the events.

        The snapshot of live bytes is taken lazily: they only fall when something is freed, so
        it is enough to look before each free and at the end.
        """
        program, allocator = self.program, self.allocator
        sizes, roles, streams = program.sizes, program.roles, program.streams
        state, blocks, live = self.state, self.blocks, self.live
        allocate, free = allocator.allocate, allocator.free
        has_uses = USE in program.kinds
        step = 0
        before = allocator.allocated
        most = reserved = grown = 0
        event = -1
        for kind, tensor in zip(program.kinds, program.ids, strict=True):
            event += 1
            if kind == ALLOC:
                if state[tensor]:
                    raise TraceError(f"event {event}: tensor {tensor} is allocated twice")
                if has_uses:
                    step = self.end_of_step(event, step)
                if not allocate(tensor, sizes[tensor], streams[tensor]) and not self.fall_back(
                    event, tensor
                ):
                    break
                state[tensor] = ALIVE
                after = allocator.allocated
                if after > before:
                    blocks[tensor] = size = after - before
                    live[roles[tensor]] += size
                    before = after
                    grown = event
                    if allocator.reserved > reserved:
                        reserved = allocator.reserved
                        self.reserved_event = event
            elif kind == FREE:
                if state[tensor] != ALIVE:
                    raise TraceError(f"event {event}: tensor {tensor} is freed but not alive")
                state[tensor] = DEAD
                if before > most:
                    most = before
                    self.remember(most, grown)
                free(tensor)
                size = blocks[tensor]
                live[roles[tensor]] -= size
                before -= size
            elif kind == USE:
                if state[tensor] != ALIVE:
                    raise TraceError(f"event {event}: tensor {tensor} is used but not alive")
                allocator.use(tensor)
            elif kind == EMPTY_CACHE:
                allocator.empty_cache()
            elif kind == RELEASE_POOL:
                allocator.release_pool(tensor)
            else:
                raise TraceError(f"event {event}: kind {kind} cannot be replayed")
        if before > most:
            self.remember(before, grown)
        self.reserved = reserved

    def remember(self, allocated: int, event: int) -> None:
        """Keep the live bytes of a new maximum, reached at *event*."""
        self.peak = allocated
        self.peak_event = event
        self.peak_live = self.live.copy()

    def end_of_step(self, event: int, step: int) -> int:
        """Synchronise if *event* begins another step; return its step."""
        place = self.place(event)
        assert place is not None
        if place.step != step:
            self.allocator.synchronize()
        return place.step

    def fall_back(self, event: int, tensor: int) -> bool:
        """Try the other sizes of a refused scratch *tensor*; return whether one fits."""
        program = self.program
        self.failed_bytes = program.sizes[tensor]
        for size in program.choices.get(tensor, ()):
            self.num_fallbacks += 1
            self.failed_bytes = size
            if self.allocator.allocate(tensor, size, program.streams[tensor]):
                self.failed_bytes = 0
                return True
        self.failed_event = event
        return False


def smallest_cap(
    program: Program,
    make_allocator: Callable[[int | None], Allocator],
    *,
    low: int,
    high: int,
) -> int:
    """Return the smallest cap, to a step, under which *program* completes.

    *high* is a cap known to be enough (the reserved peak of a free replay), *low* one that can
    never be less than is needed (the allocated peak less what scratch may give up).
    Bisection of at most seven caps, then the neighbour below. Caps under which an earlier replay
    would have gone the same way, step by step, are not replayed again (`Steady`): the answer is
    that of replaying them all. It is rounded up to 2 MiB and is within 2 MiB or 0.25 % of the
    edge, whichever is more, unless *low* and *high* are so far apart that the caps run out; it is
    never below the edge.

    Success under a cap is monotone in practice, not by proof: a smaller cap makes the allocator
    empty its cache earlier, and what it finds then can fit better. Of 400 random programs 14 had
    a cap that fails above one that completes, by 34 MiB at most; with expandable segments 1.
    So the neighbour below the failing end is tried too, because `least` must not be too high.
    The one above is not: a cap between the answer and *high* may fail by the same accident,
    which is calibration's part.
    """
    completes = _Caps(program, make_allocator).completes
    high = round_up(high, CAP_STEP)
    low = low // CAP_STEP * CAP_STEP - CAP_STEP
    for _ in range(MAX_REPLAYS - 1):
        step = max(CAP_STEP, high // CAP_SHARE // CAP_STEP * CAP_STEP)
        if high - low <= step:
            break
        middle = round_up((low + high) // 2, CAP_STEP)
        if completes(middle):
            high = middle
        else:
            low = middle
    below = low - CAP_STEP
    if below > 0 and completes(below):
        return below
    return high


class _Caps:
    """Whether a program completes under caps, each way it can go replayed once."""

    def __init__(self, program: Program, make_allocator: Callable[[int | None], Allocator]) -> None:
        self.program = program
        self.make_allocator = make_allocator
        self.known: list[tuple[range, bool]] = []

    def completes(self, cap: int) -> bool:
        """Return whether the program completes under *cap*."""
        for alike, completed in self.known:
            if cap in alike:
                return completed
        allocator = self.make_allocator(cap)
        completed = replay(self.program, allocator).completed
        if isinstance(allocator, Steady):
            self.known.append((allocator.alike, completed))
        return completed
