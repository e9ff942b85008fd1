"""One model of many equal layers, from two traces of few.

    Trace of 3 layers, Trace of 4 layers -> Trace of n layers

The trace of four layers is cut into runs: places where the same happens once for each layer
(loading, forward, backward, the optimizer's lists). Proven before anything is extended: the two
middle copies of every run are equal, event by event; the trace of three layers is the trace of
four without one of them; sizes outside the runs differ by a constant. Which tensor a repeated
event frees follows from the two middle copies: of the same layer, of its neighbour, of the mirrored
one (backward frees what forward kept), or always the same.
Never guesses: traces that do not prove it give None, and the job is traced as it is.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from estimator.layering.runs import Cut, Run, cut_of
from estimator.trace import EventKind, Place, Trace

FEW, SOME = 3, 4
"""Layers of the two traces."""
LEAST_LAYERS = 8
"""From so many layers on two small traces take less time than the one in full."""
ONCE = -1
TENSOR_EVENTS = (EventKind.ALLOC, EventKind.FREE, EventKind.USE)


def extended(few: Trace, some: Trace, num_layers: int) -> Trace | None:
    """Return the trace of *num_layers* layers, None if *few* and *some* do not prove it.

    *few* and *some* are traces of one job with `FEW` and `SOME` layers. Exact to the byte and to
    the event where it answers (tests compare it with traces in full).
    """
    if num_layers < LEAST_LAYERS:
        return None
    cuts = cut_of(few, FEW), cut_of(some, SOME)
    if cuts[0] is None or cuts[1] is None:
        return None
    growth = _growth(cuts[0], cuts[1])
    if growth is None:
        return None
    try:
        return _Extension(cuts[1], growth, num_layers).run(few)
    except _NotProven:
        return None


class _NotProven(Exception):
    """Two copies of a layer do not say what another one would do."""


def _growth(few: Cut, some: Cut) -> dict[int, int] | None:
    """Return how many bytes each tensor outside the runs of *some* gains with a layer.

    None if *few* is not *some* without one middle layer.
    """
    left, right = few.trace, some.trace
    if len(few.runs) != len(some.runs) or not _same_notes(left, right):
        return None
    shorter = _without_a_layer(some)
    if len(shorter) != left.num_events:
        return None
    inside = some.inside
    growth: dict[int, int] = {}
    for a, b in enumerate(shorter):
        if few.shapes[a] != some.shapes[b]:
            return None
        kind = left.kinds[a]
        if kind == EventKind.KERNEL:
            if left.kernels[left.ids[a]] != right.kernels[right.ids[b]]:
                return None
        elif kind == EventKind.ALLOC:
            difference = right.sizes[right.ids[b]] - left.sizes[left.ids[a]]
            if difference and inside[b]:
                return None
            if difference:
                growth[right.ids[b]] = difference
    return growth


def _same_notes(few: Trace, some: Trace) -> bool:
    return (
        few.framework_version == some.framework_version
        and few.assumptions == some.assumptions
        and few.unknowns == some.unknowns
        and few.warnings == some.warnings
        and few.method == some.method
    )


def _without_a_layer(cut: Cut) -> list[int]:
    """Return the events without the second of the two middle copies of every run."""
    events: list[int] = []
    at = 0
    for run in cut.runs:
        events += range(at, run.bounds[2])
        at = run.bounds[3]
    events += range(at, cut.trace.num_events)
    return events


@dataclass(frozen=True, slots=True)
class _Where:
    """Where a tensor of the small trace was made: run, copy and offset, or the event if `ONCE`."""

    run: int
    copy: int
    offset: int


class _Extension:
    """The columns of the long trace while they are made."""

    def __init__(self, cut: Cut, growth: dict[int, int], num_layers: int) -> None:
        self.cut = cut
        self.trace = cut.trace
        self.growth = growth
        self.layers = num_layers
        self.more = num_layers - SOME
        self.where = self._where()
        self.sizes: array[int] = array("q")
        self.roles = bytearray()
        self.streams = bytearray()
        self.kinds = bytearray()
        self.ids: array[int] = array("q")
        self.places: array[int] = array("q")
        self.once: dict[int, int] = {}
        self.made: list[list[dict[int, int]]] = [[] for _ in cut.runs]
        self.table: dict[Place, int] = {}
        self.placed: dict[tuple[int, int], int] = {}
        self.alive = bytearray()

    def run(self, few: Trace) -> Trace:
        """Return the long trace.

        Raises:
            _NotProven: if it cannot be told which tensor an event is about.
        """
        at = 0
        for number, run in enumerate(self.cut.runs):
            self._stretch(at, run.bounds[0])
            self._repeat(number, run)
            at = run.bounds[-1]
        self._stretch(at, self.trace.num_events)
        left = [_never_freed(few), _never_freed(self.trace), sum(self.alive)]
        if left[2] != left[1] + (left[1] - left[0]) * self.more:
            raise _NotProven
        parameters = self.trace.parameters
        return replace(
            self.trace,
            sizes=self.sizes,
            roles=bytes(self.roles),
            streams=bytes(self.streams),
            kinds=bytes(self.kinds),
            ids=self.ids,
            places=self.places,
            place_table=tuple(self.table),
            parameters=parameters + (parameters - few.parameters) * self.more,
            facts={**self.trace.facts, "layersTraced": f"{SOME} of {self.layers}"},
        )

    # --- what happens once ------------------------------------------------------------------

    def _stretch(self, start: int, end: int) -> None:
        """Copy events that no layer repeats."""
        for event in range(start, end):
            self._copy(event, self._moved_once(event), self.once, event)

    def _moved_once(self, event: int) -> int:
        layer = self.cut.layers[self.trace.places[event]]
        return 0 if layer is None or layer < SOME // 2 else self.more

    def _copy(self, event: int, moved: int, made: dict[int, int], key: int) -> None:
        """Append *event* as it is, its layer *moved*; remember what it makes under *key*."""
        trace = self.trace
        kind, identifier = trace.kinds[event], trace.ids[event]
        place = self._place(trace.places[event], moved)
        if kind == EventKind.ALLOC:
            made[key] = self._make(identifier, place)
        else:
            if kind in TENSOR_EVENTS:
                identifier = self._explicit(identifier)
            self._append(kind, identifier, place)

    def _explicit(self, tensor: int) -> int:
        """Return what stands for *tensor*: copies near an end stay near that end."""
        where = self.where[tensor]
        if where.run == ONCE:
            return self.once[where.offset]
        copy = where.copy if where.copy < SOME // 2 else where.copy + self.more
        return self._at(where.run, copy, where.offset)

    # --- what every layer does --------------------------------------------------------------

    def _repeat(self, number: int, run: Run) -> None:
        """Copy a run, its middle as often as there are layers."""
        copies = self.made[number]
        for copy in range(self.layers):
            copies.append({})
            if 0 < copy < self.layers - 1:
                self._middle(run, copy, copies[copy])
                continue
            original = 0 if copy == 0 else SOME - 1
            start, end = run.bounds[original], run.bounds[original + 1]
            moved = self._moved(run, copy - original)
            for event in range(start, end):
                self._copy(event, moved, copies[copy], event - start)

    def _moved(self, run: Run, distance: int) -> int:
        """Return by how much layers move where copies are *distance* later."""
        return self.more - distance if run.is_backward else distance

    def _middle(self, run: Run, copy: int, made: dict[int, int]) -> None:
        trace, first, second = self.trace, run.bounds[1], run.bounds[2]
        moved = self._moved(run, copy - 1)
        for offset in range(second - first):
            event = first + offset
            kind, identifier = trace.kinds[event], trace.ids[event]
            place = self._place(trace.places[event], moved)
            if kind == EventKind.ALLOC:
                made[offset] = self._make(identifier, place)
                continue
            if kind in TENSOR_EVENTS:
                identifier = self._related(identifier, trace.ids[second + offset], copy)
            self._append(kind, identifier, place)

    def _related(self, left: int, right: int, copy: int) -> int:
        """Return what *copy* means where the first middle copy has *left*, the second *right*."""
        one, two = self.where[left], self.where[right]
        if left == right:
            return self._explicit(left)
        if one.run != two.run or one.run == ONCE or abs(two.copy - one.copy) != 1:
            raise _NotProven
        is_mirrored = two.copy < one.copy
        target = one.copy + 1 + self.more - copy if is_mirrored else copy + one.copy - 1
        ends = {0: 0, self.layers - 1: SOME - 1}
        alike = (ends[target],) if target in ends else range(1, SOME - 1)
        offsets = {each.offset for each in (one, two) if each.copy in alike}
        if len(offsets) != 1:
            raise _NotProven
        return self._at(one.run, target, offsets.pop())

    # --- columns ----------------------------------------------------------------------------

    def _at(self, run: int, copy: int, offset: int) -> int:
        copies = self.made[run]
        if not 0 <= copy < len(copies) or offset not in copies[copy]:
            raise _NotProven
        return copies[copy][offset]

    def _make(self, tensor: int, place: int) -> int:
        trace, made = self.trace, len(self.sizes)
        size = trace.sizes[tensor] + self.growth.get(tensor, 0) * self.more
        if size < 0:
            raise _NotProven
        self.sizes.append(size)
        self.roles.append(trace.roles[tensor])
        self.streams.append(trace.streams[tensor])
        self.alive.append(1)
        self._append(EventKind.ALLOC, made, place)
        return made

    def _append(self, kind: int, identifier: int, place: int) -> None:
        if kind == EventKind.FREE:
            if not self.alive[identifier]:
                raise _NotProven
            self.alive[identifier] = 0
        self.kinds.append(kind)
        self.ids.append(identifier)
        self.places.append(place)

    def _place(self, place: int, moved: int) -> int:
        """Return the place of the long trace that is *place* with its layer *moved*."""
        key = (place, moved if self.cut.layers[place] is not None else 0)
        if key not in self.placed:
            moved_to = self.cut.place(place, key[1])
            self.placed[key] = self.table.setdefault(moved_to, len(self.table))
        return self.placed[key]

    def _where(self) -> list[_Where]:
        """Return where each tensor was made."""
        found = [_Where(ONCE, 0, 0)] * len(self.trace.sizes)
        spans: list[tuple[int, int, int, int]] = []
        at = 0
        for number, run in enumerate(self.cut.runs):
            spans.append((at, run.bounds[0], ONCE, 0))
            spans += [(a, b, number, copy) for copy, (a, b) in enumerate(pairwise(run.bounds))]
            at = run.bounds[-1]
        spans.append((at, self.trace.num_events, ONCE, 0))
        for start, end, number, copy in spans:
            for event in range(start, end):
                if self.trace.kinds[event] == EventKind.ALLOC:
                    offset = event if number == ONCE else event - start
                    found[self.trace.ids[event]] = _Where(number, copy, offset)
        return found


def _never_freed(trace: Trace) -> int:
    kinds: Sequence[int] = trace.kinds
    return sum(1 for kind in kinds if kind == EventKind.ALLOC) - sum(
        1 for kind in kinds if kind == EventKind.FREE
    )
