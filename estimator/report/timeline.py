"""The run of a program as few samples: who holds memory, along the events.

    Program, Allocator -> replay -> Timeline; Timeline -> shorter Timeline

Stretches of events are replaced by their extremes, which is what a line of so many pixels can show
(U. Jugel et al., M4, VLDB 2014, section 4). Pure: no framework, no GPU, no clock.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from estimator.allocators.protocol import Allocator
from estimator.program import Program
from estimator.replay import Replay, replay
from estimator.report.account import NOWHERE, ROLE_NAMES
from estimator.report.drawing import Span, Timeline
from estimator.result import Moment
from estimator.trace import Place, Role

MAX_SAMPLES = 2000
"""About as many as a wide screen has columns."""
MAX_SPANS = 150
"""More phases than that are not told apart."""
PER_STRETCH = 3


@dataclass(frozen=True, slots=True)
class Sample:
    """What is held right after one event."""

    event: int
    allocated: int
    reserved: int
    live: tuple[int, ...]
    """Block bytes by role, in the order of `Role`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One run and its samples."""

    run: Replay
    timeline: Timeline
    blocks: array[int]
    """Block bytes that each tensor had, 0 if it never had one."""


def observed(program: Program, allocator: Allocator) -> Observed:
    """Return the run of *program* on a fresh *allocator*, with at most `MAX_SAMPLES` samples.

    Raises:
        TraceError: if a tensor is allocated twice, or freed or used while not alive.
    """
    spans = spans_of(program)
    stretches = _Stretches([span.first for span in spans], len(program.kinds), most=MAX_SAMPLES)
    watch = _Watch(program, allocator, stretches)
    run = replay(program, watch)
    return Observed(
        run=run,
        timeline=_timeline(program, spans, list(stretches.samples())),
        blocks=watch.blocks,
    )


def thinned(timeline: Timeline, *, most: int) -> Timeline:
    """Return *timeline* with at most *most* samples, its extremes kept."""
    if len(timeline.events) <= most:
        return timeline
    firsts = [span.first for span in timeline.spans]
    stretches = _Stretches(firsts, timeline.num_events, most=most)
    index_of = {}
    for index, (event, allocated) in enumerate(
        zip(timeline.events, timeline.allocated(), strict=True)
    ):
        index_of[event] = index
        stretches.note(event, allocated, timeline.reserved[index], ())
    kept = [index_of[sample.event] for sample in stretches.samples()]
    return timeline.model_copy(
        update={
            "events": tuple(timeline.events[index] for index in kept),
            "reserved": tuple(timeline.reserved[index] for index in kept),
            "places": tuple(timeline.places[index] for index in kept),
            "live": {
                role: tuple(column[index] for index in kept)
                for role, column in timeline.live.items()
            },
        }
    )


def spans_of(program: Program) -> tuple[Span, ...]:
    """Return the phases of *program* in order; its steps, or nothing, if there are too many."""
    for is_fine in (True, False):
        spans = _spans(program, is_fine=is_fine)
        if len(spans) <= MAX_SPANS:
            return spans
    return ()


def _spans(program: Program, *, is_fine: bool) -> tuple[Span, ...]:
    spans: list[Span] = []
    last = -1
    for event, index in enumerate(program.places):
        if index == last:
            continue
        last = index
        place = program.place_table[index]
        phase = place.phase.value if is_fine or not place.step else ""
        if not spans or (spans[-1].step, spans[-1].phase) != (place.step, phase):
            spans.append(Span(step=place.step, phase=phase, first=event))
            if len(spans) > MAX_SPANS:
                break
    return tuple(spans)


class _Watch:
    """An allocator that tells what another one holds after each event.

    Every call but `synchronize` and a refused request ends one event.
    """

    def __init__(self, program: Program, inner: Allocator, stretches: _Stretches) -> None:
        self.inner = inner
        self.stretches = stretches
        self.roles = program.roles
        self.blocks = array("q", bytes(8 * len(program.sizes)))
        self.live = [0] * len(Role)
        self.event = 0
        self.allocated = inner.allocated
        self.reserved = inner.reserved

    def allocate(self, tensor: int, nbytes: int, stream: int = 0) -> bool:
        """Allocate as watched."""
        before = self.inner.allocated
        if not self.inner.allocate(tensor, nbytes, stream):
            self.allocated, self.reserved = self.inner.allocated, self.inner.reserved
            return False
        size = self.inner.allocated - before
        self.blocks[tensor] = size
        self.live[self.roles[tensor]] += size
        self._end_event()
        return True

    def free(self, tensor: int) -> None:
        """Free as watched."""
        self.inner.free(tensor)
        self.live[self.roles[tensor]] -= self.blocks[tensor]
        self._end_event()

    def use(self, tensor: int) -> None:
        """Use as watched."""
        self.inner.use(tensor)
        self._end_event()

    def synchronize(self) -> None:
        """Wait as watched."""
        self.inner.synchronize()
        self.allocated, self.reserved = self.inner.allocated, self.inner.reserved

    def empty_cache(self) -> None:
        """Empty as watched."""
        self.inner.empty_cache()
        self._end_event()

    def release_pool(self, pool: int) -> None:
        """Release as watched."""
        self.inner.release_pool(pool)
        self._end_event()

    def _end_event(self) -> None:
        self.allocated, self.reserved = self.inner.allocated, self.inner.reserved
        self.stretches.note(self.event, self.allocated, self.reserved, self.live)
        self.event += 1


class _Stretches:
    """Events in stretches that end with a phase, and the extremes of each."""

    def __init__(self, firsts: list[int], num_events: int, *, most: int) -> None:
        room = most // PER_STRETCH
        self.firsts = firsts if 2 * len(firsts) <= room else []
        self.width = max(1, -(-num_events // (room - len(self.firsts))))
        self.end = 0
        self.kept: list[Sample] = []
        self.low: Sample | None = None
        self.high: Sample | None = None
        self.held: Sample | None = None

    def note(self, event: int, allocated: int, reserved: int, live: Iterable[int]) -> None:
        """Take what is held after *event*; the first of equal extremes is kept."""
        if event >= self.end:
            self._close()
            following = bisect_right(self.firsts, event)
            limit = self.firsts[following] if following < len(self.firsts) else event + self.width
            self.end = min(event + self.width, limit)
        low, high, held = self.low, self.high, self.held
        is_low = low is None or allocated < low.allocated
        is_high = high is None or allocated > high.allocated
        is_held = held is None or reserved > held.reserved
        if is_low or is_high or is_held:
            sample = Sample(event, allocated, reserved, tuple(live))
            self.low = sample if is_low else low
            self.high = sample if is_high else high
            self.held = sample if is_held else held

    def samples(self) -> Iterator[Sample]:
        """Yield what was kept, in order."""
        self._close()
        yield from self.kept

    def _close(self) -> None:
        found = {each.event: each for each in (self.low, self.high, self.held) if each is not None}
        self.kept += [found[event] for event in sorted(found)]
        self.low = self.high = self.held = None


def _timeline(program: Program, spans: tuple[Span, ...], samples: list[Sample]) -> Timeline:
    moments: dict[Place, int] = {}
    places = tuple(moments.setdefault(_place(program, each), len(moments)) for each in samples)
    columns = {ROLE_NAMES[role]: tuple(each.live[role] for each in samples) for role in Role}
    return Timeline(
        num_events=len(program.kinds),
        events=tuple(each.event for each in samples),
        reserved=tuple(each.reserved for each in samples),
        live={role: column for role, column in columns.items() if any(column)},
        moments=tuple(moment_of(place) for place in moments),
        places=places,
        spans=spans,
    )


def _place(program: Program, sample: Sample) -> Place:
    return program.place_table[program.places[sample.event]]


def moment_of(place: Place | None) -> Moment:
    """Return *place* as written; that of an empty program is nowhere."""
    found = place or NOWHERE
    return Moment(
        step=found.step, phase=found.phase.value, operator=found.operator, module=found.module
    )
