"""What the tests of extended traces run in a child process that has torch."""

from __future__ import annotations

from typing import Any

from estimator.frontends import load
from estimator.layering import layered_trace
from estimator.spec import parse_spec
from estimator.trace import EventKind, Trace
from tests.estimator.frontends.children import AMPERE

TENSOR_EVENTS = (EventKind.ALLOC, EventKind.FREE, EventKind.USE)


def first_difference(document: dict[str, Any]) -> tuple[str, str]:
    """Return how the job was traced, and where that differs from its trace in full, or ''."""
    frontend, spec = load("pytorch"), parse_spec(document)
    full = frontend.trace_job(spec, traits=AMPERE)
    layered = layered_trace(frontend, spec, traits=AMPERE)
    return layered.facts.get("layersTraced", "in full"), _difference(full, layered)


def _difference(left: Trace, right: Trace) -> str:
    """Return the first event that differs, whatever tensors are called."""
    if left.num_events != right.num_events:
        return f"{left.num_events} events and {right.num_events}"
    names: dict[int, int] = {}
    for event in range(left.num_events):
        a, b = left.ids[event], right.ids[event]
        kind = left.kinds[event]
        place = left.place_table[left.places[event]]
        is_same = kind == right.kinds[event]
        is_same = is_same and place == right.place_table[right.places[event]]
        if is_same and kind in TENSOR_EVENTS:
            is_same = (
                names.setdefault(a, b) == b
                and left.sizes[a] == right.sizes[b]
                and left.roles[a] == right.roles[b]
                and left.streams[a] == right.streams[b]
            )
        elif is_same and kind == EventKind.KERNEL:
            is_same = left.kernels[a] == right.kernels[b]
        if not is_same:
            return f"event {event} at {place}"
    notes = left.assumptions == right.assumptions and left.unknowns == right.unknowns
    return "" if notes and left.parameters == right.parameters else "notes or parameters"
