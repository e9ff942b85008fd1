"""What ranks of one model replica exchange, and what that leaves on each of them.

    Trace of one rank, Parallelism -> Trace with the buffers of exchange

* Sequence parallel: norms and the residual stream (what happens in a norm or in the block itself)
  are divided by the tensor-parallel degree; the input of a divided linear is gathered into one
  buffer that all of them use.
* Context parallel: attention passes keys and values around a ring: two buffers for what comes in
  while it works, two more for their gradients in backward.
* Pipeline: one buffer for what a neighbour sends, beside the stage's own input.

Source: NVIDIA/Megatron-LM@00caa53a `core/tensor_parallel/layers.py` (`get_global_memory_buffer`),
`core/pipeline_parallel/p2p_communication.py`; pytorch 2.15.0 `distributed/tensor/experimental/
_attention.py` (`_templated_ring_attention`).
Not modelled: load balancing's copies of the sequence, all-to-all of experts (a named unknown).
"""

from __future__ import annotations

from estimator.sharding.rewriting import Rewriter, resized
from estimator.trace import EventKind, Phase, Role, Trace

COMPUTING = (Phase.FORWARD, Phase.BACKWARD)
RING = {Phase.FORWARD: 2, Phase.BACKWARD: 4}
"""Copies of this rank's keys and values that a ring holds beside its own."""
MOVING = (Role.ACTIVATION, Role.TEMPORARY)


def with_shorter_norms(trace: Trace, degree: int, stream_bytes: int) -> Trace:
    """Return *trace* with norms and residual stream of *stream_bytes* in *degree* parts."""
    parts: set[int] = set()
    for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        where = trace.place_table[place]
        is_moving = kind == EventKind.ALLOC and trace.roles[tensor] in MOVING
        if is_moving and where.phase in COMPUTING and _is_stream(where.module):
            parts.add(tensor)
    divided = resized(
        trace,
        lambda tensor: (
            -(-trace.sizes[tensor] // degree) if tensor in parts else trace.sizes[tensor]
        ),
    )
    return with_buffer(divided, stream_bytes)


def _is_stream(module: str) -> bool:
    """Return whether *module* is a norm, an embedding's output or a numbered block itself."""
    name = module.rpartition(".")[2]
    return "norm" in name or name.startswith("ln_") or name.isdigit()


def with_buffer(trace: Trace, nbytes: int) -> Trace:
    """Return *trace* with one buffer that stays from the first step on."""
    out = Rewriter(trace)
    is_made = False
    for event in range(trace.num_events):
        place = trace.places[event]
        if not is_made and trace.place_table[place].phase is not Phase.LOAD:
            out.alloc(nbytes, Role.COMMUNICATION, place)
            is_made = True
        out.keep(event)
    return out.result()


def with_ring(trace: Trace, own_bytes: int) -> Trace:
    """Return *trace* with the buffers of ring attention; *own_bytes* are a rank's keys, values."""
    out = Rewriter(trace)
    buffer: int | None = None
    for event in range(trace.num_events):
        place = trace.places[event]
        where = trace.place_table[place]
        is_attending = where.phase in RING and _is_attention(where.module)
        if is_attending and buffer is None:
            buffer = out.alloc(RING[where.phase] * own_bytes, Role.COMMUNICATION, place)
        elif not is_attending and buffer is not None:
            out.free(buffer, place)
            buffer = None
        out.keep(event)
    return out.result()


def _is_attention(module: str) -> bool:
    return "attn" in module or "attention" in module.removesuffix("_layernorm").rpartition(".")[2]
