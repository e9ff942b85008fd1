"""Micro-batches a pipeline stage holds at once.

    Trace of one micro-batch at a time, how many -> Trace with the others' activations

A stage runs forward passes ahead of its first backward: under 1F1B as many as there are stages
from it to the last (no more than there are micro-batches), under GPipe all of them; interleaved
stages hold (1 + (stages - 1) / (stages * chunks)) times as much on the first.
Each kept tensor is taken as often from its own allocation to the end of the step. Copies beyond
`MOST_COPIES` are one tensor of as many blocks: the same bytes, in segments of their own.
Source: NVIDIA/Megatron-LM@00caa53a `core/pipeline_parallel/schedules.py`; GPipe derived.
Not modelled: buffers of sends and receives (one output each), uneven micro-batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import repeat

from estimator.allocators.rounding import block_size
from estimator.sharding.rewriting import Rewriter
from estimator.spec.training import Parallelism
from estimator.spec.vocabulary import Schedule
from estimator.trace import EventKind, Phase, Role, Trace

MOST_COPIES = 64
"""Copies of a tensor that are tensors of their own: GPipe may hold a million micro-batches."""


def held_at_once(parallel: Parallelism, stage: int) -> float:
    """Return how many micro-batches *stage* holds before its first backward."""
    stages, many = parallel.pipeline_parallel, max(1, parallel.micro_batches)
    if stages == 1:
        return 1
    if parallel.schedule is Schedule.GPIPE:
        return many
    ahead = float(stages - stage)
    if parallel.schedule is Schedule.INTERLEAVED:
        chunks = max(1, parallel.virtual_stages)
        ahead = stages * (1 + (stages - 1) / (stages * chunks)) - stage
    return min(many, ahead)


def in_flight(trace: Trace, many: float) -> Trace:
    """Return *trace* with activations kept *many* times."""
    if many <= 1:
        return trace
    kept = _kept(trace)
    out = Rewriter(trace)
    copies: list[int] = []
    step = 0
    for event in range(len(trace.kinds)):
        place = trace.places[event]
        where = trace.place_table[place]
        if where.step != step:
            for tensor in copies:
                out.free(tensor, place)
            copies, step = [], where.step
        out.keep(event)
        tensor = trace.ids[event]
        if trace.kinds[event] == EventKind.ALLOC and tensor in kept:
            for nbytes in _copies(trace.sizes[tensor], many):
                copies.append(out.alloc(nbytes, Role.ACTIVATION, place))
    return out.result()


def _copies(nbytes: int, many: float) -> Iterator[int]:
    """Yield the sizes of what is there beside a tensor of *nbytes* that is held *many* times."""
    whole = math.floor(many) - 1
    yield from repeat(nbytes, min(whole, MOST_COPIES))
    if whole > MOST_COPIES:
        yield (whole - MOST_COPIES) * block_size(nbytes)
    rest = int(nbytes * (many - math.floor(many)))
    if rest:
        yield rest


def _kept(trace: Trace) -> frozenset[int]:
    """Return the tensors that are made in a forward pass and freed in backward."""
    born: dict[int, int] = {}
    found: set[int] = set()
    for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        phase = trace.place_table[place].phase
        if kind == EventKind.ALLOC and phase is Phase.FORWARD:
            born[tensor] = place
        elif kind == EventKind.FREE and phase is Phase.BACKWARD and tensor in born:
            found.add(tensor)
    return frozenset(found)
