"""Where in a trace the same happens once for each layer.

    Trace, number of layers -> Cut

Three kinds of runs, looked for in this order: events that happen in the layers' modules, first
layer to last or last to first; elsewhere, events about tensors that were made in them (gradients
freed before a step, keys and values kept from the last one); and elsewhere, what an optimizer does
for lists of tensors, whose period is a multiple of the trained tensors of a layer.
A copy is what happens until the next layer's begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from estimator.trace import EventKind, Phase, Place, Role, Trace

NUMBERED = re.compile(r"^(.*?\.)(\d+)(?=\.|$)(.*)$")
"""The outermost numbered module of a path: `model.layers.3.mlp`."""
MOST_LISTS = 32
"""So many tensors an optimizer's period may have for each trained one."""
TENSOR_EVENTS = (EventKind.ALLOC, EventKind.FREE, EventKind.USE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One copy for each layer: copy k is the events from `bounds[k]` to `bounds[k + 1]`."""

    bounds: tuple[int, ...]
    is_backward: bool
    """Whether the last layer comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A trace cut into what happens once and what every layer repeats."""

    trace: Trace
    prefix: str
    layers: Sequence[int | None]
    """Layer of each entry of the place table."""
    shapes: Sequence[object]
    """What happens at each event, whichever the layer and the size."""
    runs: Sequence[Run]
    """In order, none overlapping another."""

    @property
    def inside(self) -> bytearray:
        """Return for each event whether it is in a run."""
        found = bytearray(self.trace.num_events)
        for run in self.runs:
            start, end = run.bounds[0], run.bounds[-1]
            found[start:end] = b"\1" * (end - start)
        return found

    def place(self, place: int, moved: int) -> Place:
        """Return an entry of the place table with its layer *moved*."""
        where = self.trace.place_table[place]
        layer = self.layers[place]
        if layer is None or not moved:
            return where
        rest = where.module[len(f"{self.prefix}{layer}") :]
        return replace(where, module=f"{self.prefix}{layer + moved}{rest}")


def cut_of(trace: Trace, num_layers: int) -> Cut | None:
    """Return *trace* cut into runs of *num_layers* copies.

    None if no one list of modules has so many members, if layers do not follow each other, or if
    middle layers differ.
    """
    prefix = _prefix(trace, num_layers)
    if prefix is None:
        return None
    layers = [_layer(place.module, prefix) for place in trace.place_table]
    shapes, tokens = _tokens(trace, layers, prefix)
    by_place: list[int | None] = [layers[place] for place in trace.places]
    by_tensor = _by_tensor(trace, layers)
    spans = [(0, trace.num_events)]
    runs: list[Run] = []
    finders: tuple[Callable[[int, int], list[Run] | None], ...] = (
        lambda start, end: _followed(trace, by_place, start, end, num_layers, is_strict=True),
        lambda start, end: _followed(trace, by_tensor, start, end, num_layers, is_strict=False),
        lambda start, end: _periodic(tokens, start, end, num_layers, _trained(trace, layers)),
    )
    for find in finders:
        for start, end in spans:
            found = find(start, end)
            if found is None:
                return None
            runs += found
        runs.sort(key=lambda run: run.bounds[0])
        spans = _between(runs, trace.num_events)
    if not runs or not all(_is_even(tokens, run) for run in runs):
        return None
    return Cut(trace=trace, prefix=prefix, layers=layers, shapes=shapes, runs=runs)


def _between(runs: Sequence[Run], end: int) -> list[tuple[int, int]]:
    edges = [0, *(edge for run in runs for edge in (run.bounds[0], run.bounds[-1])), end]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


def _is_even(tokens: Sequence[int], run: Run) -> bool:
    """Return whether all copies but the first and the last are the same."""
    middle = [tuple(tokens[a:b]) for a, b in list(pairwise(run.bounds))[1:-1]]
    return len(set(middle)) == 1


def _prefix(trace: Trace, num_layers: int) -> str | None:
    """Return the path of the one list of modules with *num_layers* members that hold weights."""
    members: dict[str, set[int]] = {}
    for place in trace.place_table:
        match = NUMBERED.match(place.module)
        if match:
            members.setdefault(match[1], set()).add(int(match[2]))
    # A second list of numbered modules would have to grow with the first, or not: who knows.
    if len(members) != 1:
        return None
    prefix, numbers = next(iter(members.items()))
    return prefix if numbers == set(range(num_layers)) else None


def _layer(module: str, prefix: str) -> int | None:
    match = NUMBERED.match(module)
    return int(match[2]) if match and match[1] == prefix else None


def _tokens(
    trace: Trace, layers: Sequence[int | None], prefix: str
) -> tuple[list[object], list[int]]:
    """Return what happens at each event whatever its size, and with its size, as numbers."""
    general: dict[tuple[object, ...], int] = {}
    places: list[int] = []
    for place, layer in zip(trace.place_table, layers, strict=True):
        rest = place.module if layer is None else place.module[len(f"{prefix}{layer}") :]
        key = (place.step, place.phase, place.operator, layer is None, rest)
        places.append(general.setdefault(key, len(general)))
    names: dict[tuple[object, ...], int] = {}
    born = [0] * len(trace.sizes)
    shapes: list[object] = []
    tokens: list[int] = []
    rows = zip(trace.kinds, trace.ids, trace.places, strict=True)
    for kind, identifier, place_number in rows:
        where = places[place_number]
        if kind == EventKind.ALLOC:
            what: object = (trace.roles[identifier], trace.streams[identifier])
            born[identifier] = where
            size = trace.sizes[identifier]
        elif kind in TENSOR_EVENTS:
            what = (trace.roles[identifier], born[identifier])
            size = trace.sizes[identifier]
        else:
            what, size = None, identifier
        shapes.append((kind, _named(trace.place_table[place_number], layers[place_number], prefix)))
        tokens.append(names.setdefault((kind, where, what, size), len(names)))
    return shapes, tokens


def _named(place: Place, layer: int | None, prefix: str) -> object:
    rest = place.module if layer is None else place.module[len(f"{prefix}{layer}") :]
    return (place.step, place.phase, place.operator, layer is None, rest)


def _by_tensor(trace: Trace, layers: Sequence[int | None]) -> list[int | None]:
    """Return the layer in which the tensor of each event was made."""
    born: list[int | None] = [None] * len(trace.sizes)
    found: list[int | None] = []
    for kind, identifier, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        if kind == EventKind.ALLOC:
            born[identifier] = layers[place]
        found.append(born[identifier] if kind in TENSOR_EVENTS else None)
    return found


def _followed(
    trace: Trace,
    layer_of: Sequence[int | None],
    start: int,
    end: int,
    num_layers: int,
    *,
    is_strict: bool,
) -> list[Run] | None:
    """Return the runs between two events in which layers follow each other.

    A run stays in one phase. Where not all layers appear in order there is no run; None if that
    is *is_strict*ly needed.
    """
    marks: list[tuple[int, int, tuple[int, Phase]]] = []
    for event in range(start, end):
        layer = layer_of[event]
        place = trace.place_table[trace.places[event]]
        when = (place.step, place.phase)
        if layer is not None and (not marks or marks[-1][1:] != (layer, when)):
            marks.append((event, layer, when))
    ends = _ends(trace, layer_of, start, end)
    runs: list[Run] = []
    at = 0
    while at < len(marks):
        group = marks[at : at + num_layers]
        order = [layer for _, layer, _ in group]
        is_one_phase = len({when for _, _, when in group}) == 1
        backward = list(range(num_layers - 1, -1, -1))
        if is_one_phase and order in (backward, backward[::-1]):
            bounds = (*(event for event, _, _ in group), ends[group[-1][0]])
            runs.append(Run(bounds=bounds, is_backward=order == backward))
            at += num_layers
        elif is_strict:
            return None
        else:
            at += 1
    return runs


def _ends(trace: Trace, layer_of: Sequence[int | None], start: int, end: int) -> dict[int, int]:
    """Return, for the first event of each stretch of one layer, what follows its last one."""
    found: dict[int, int] = {}
    first, current = start, None
    for event in range(start, end):
        layer = layer_of[event]
        if layer is None:
            continue
        place = trace.place_table[trace.places[event]]
        state = (layer, place.step, place.phase)
        if state != current:
            first, current = event, state
        found[first] = event + 1
    return found


def _trained(trace: Trace, layers: Sequence[int | None]) -> int:
    """Return the trained tensors of a layer: the gradients of its first backward pass."""
    seen: set[int] = set()
    for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        where = trace.place_table[place]
        is_there = where.step == 1 and where.phase is Phase.BACKWARD and layers[place] == 1
        if is_there and kind == EventKind.ALLOC and trace.roles[tensor] == Role.GRADIENT:
            seen.add(tensor)
    return len(seen)


def _periodic(
    tokens: Sequence[int], start: int, end: int, num_layers: int, trained: int
) -> list[Run]:
    """Return the runs between two events that repeat for each layer what *trained* tensors need.

    A period of so many tensors, or of a multiple, is looked for before any other: lists of equal
    tensors repeat with every period.
    """
    runs: list[Run] = []
    at = start
    longest = MOST_LISTS * trained
    periods = [*range(trained, longest + 1, trained)] if trained else []
    periods += [each for each in range(trained + 1, longest) if each % trained]
    while trained and at + num_layers * trained <= end:
        period = next(
            (
                each
                for each in periods
                if at + num_layers * each <= end
                and tokens[at] == tokens[at + each]
                and tokens[at : at + (num_layers - 1) * each]
                == tokens[at + each : at + num_layers * each]
            ),
            None,
        )
        if period is None:
            at += 1
            continue
        bounds = tuple(at + copy * period for copy in range(num_layers + 1))
        runs.append(Run(bounds=bounds, is_backward=False))
        at = bounds[-1]
    return runs
