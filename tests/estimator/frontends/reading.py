"""Read a trace the way the tests ask about it.

Trace -> live bytes, sizes by role, faults
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from estimator.trace import EventKind, Phase, Role, Trace


def job(model: dict[str, Any], batch: int = 2, **rest: Any) -> dict[str, Any]:
    """Return a JobSpec of *model*. Keys of `input` other than the batch come as `input`."""
    given = rest.pop("input", {})
    return {
        "framework": "pytorch",
        "model": model,
        "input": {"batchSize": batch, **given},
        **rest,
    }


def torchvision(name: str = "resnet18", **options: Any) -> dict[str, Any]:
    """Return the model part of a torchvision classifier."""
    return {"source": "torchvision", "name": name, **({"options": options} if options else {})}


def bert(**changes: Any) -> dict[str, Any]:
    """Return a small BERT with a masked-LM head; *changes* go into its configuration."""
    config = {
        "model_type": "bert",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "vocab_size": 1000,
        **changes,
    }
    return {"source": "huggingface", "name": "small-bert", "task": "masked-lm", "config": config}


def llama(**changes: Any) -> dict[str, Any]:
    """Return a small Llama with grouped queries."""
    config = {
        "model_type": "llama",
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "intermediate_size": 512,
        "vocab_size": 1000,
        "tie_word_embeddings": False,
        **changes,
    }
    return {"source": "huggingface", "name": "small-llama", "task": "causal-lm", "config": config}


def layers(*widths: int, **extra: Any) -> dict[str, Any]:
    """Return linear layers of *widths* with ReLU between them."""
    made: list[dict[str, Any]] = []
    for left, right in pairwise(widths):
        made += [
            {"type": "linear", "in": left, "out": right},
            {"type": "activation", "name": "ReLU"},
        ]
    config = {"inputShape": [widths[0]], "layers": made[:-1]}
    return {"source": "layers", "name": "mlp", "config": config, **extra}


def fault(trace: Trace) -> str | None:
    """Return the first event that breaks the life of a tensor, or None."""
    seen: set[int] = set()
    alive: set[int] = set()
    for event, (kind, tensor) in enumerate(zip(trace.kinds, trace.ids, strict=True)):
        if kind == EventKind.ALLOC:
            if tensor in seen:
                return f"event {event}: tensor {tensor} is allocated twice"
            seen.add(tensor)
            alive.add(tensor)
        elif kind == EventKind.FREE:
            if tensor not in alive:
                return f"event {event}: tensor {tensor} is freed but not alive"
            alive.remove(tensor)
    return None if seen == set(range(len(trace.sizes))) else "a tensor is never allocated"


def peaks(trace: Trace) -> dict[int, int]:
    """Return the most live bytes of each step."""
    live = 0
    most: dict[int, int] = {}
    for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        if kind == EventKind.ALLOC:
            live += trace.sizes[tensor]
        elif kind == EventKind.FREE:
            live -= trace.sizes[tensor]
        step = trace.place_table[place].step
        most[step] = max(most.get(step, 0), live)
    return most


def held_after(trace: Trace) -> dict[int, int]:
    """Return the live bytes at the end of each step."""
    live = 0
    held: dict[int, int] = {}
    for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        if kind == EventKind.ALLOC:
            live += trace.sizes[tensor]
        elif kind == EventKind.FREE:
            live -= trace.sizes[tensor]
        held[trace.place_table[place].step] = live
    return held


def peak(trace: Trace) -> int:
    """Return the most live bytes."""
    return max(peaks(trace).values())


def by_role(trace: Trace) -> Counter[Role]:
    """Return the bytes of every tensor ever allocated, by role."""
    total: Counter[Role] = Counter()
    for nbytes, role in zip(trace.sizes, trace.roles, strict=True):
        total[Role(role)] += nbytes
    return total


def allocated_by(trace: Trace, operator: str, phase: Phase = Phase.FORWARD) -> list[int]:
    """Return the sizes of what *operator* allocates in *phase*, in order."""
    return [
        trace.sizes[tensor]
        for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True)
        if kind == EventKind.ALLOC
        and trace.place_table[place].operator == operator
        and trace.place_table[place].phase is phase
    ]


def operators(trace: Trace) -> set[str]:
    """Return the operators of the trace's kernels."""
    return {kernel.operator for kernel in trace.kernels}


def most_alive(trace: Trace, nbytes: int, operator: str, phase: Phase) -> int:
    """Return the most tensors of *nbytes* made by *operator* that are alive at once in *phase*."""
    alive: set[int] = set()
    most = 0
    for kind, identifier, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        where = trace.place_table[place]
        if kind == EventKind.FREE:
            alive.discard(identifier)
        elif kind == EventKind.ALLOC and (where.operator, where.phase) == (operator, phase):
            if trace.sizes[identifier] != nbytes:
                continue
            alive.add(identifier)
            most = max(most, len(alive))
    return most


def kept_at_backward(trace: Trace, nbytes: int, operator: str) -> int:
    """Return how many tensors of *nbytes* made by *operator* the last backward starts with."""
    alive: set[int] = set()
    for kind, identifier, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        where = trace.place_table[place]
        if where.phase is Phase.BACKWARD and where.step == 2:
            break
        if kind == EventKind.FREE:
            alive.discard(identifier)
        elif kind == EventKind.ALLOC and where.operator == operator:
            alive.add(identifier)
    return sum(trace.sizes[identifier] == nbytes for identifier in alive)


def sizes_in(trace: Trace, phase: Phase) -> list[int]:
    """Return the size of every tensor allocated in *phase*, in order."""
    return [
        trace.sizes[identifier]
        for kind, identifier, place in zip(trace.kinds, trace.ids, trace.places, strict=True)
        if kind == EventKind.ALLOC and trace.place_table[place].phase is phase
    ]


def kept(trace: Trace, nbytes: int) -> int:
    """Return how many tensors of *nbytes* of the last forward are alive as its backward starts."""
    alive: set[int] = set()
    for kind, identifier, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        where = trace.place_table[place]
        if where.phase is Phase.BACKWARD and where.step == 2:
            break
        if kind == EventKind.ALLOC:
            alive.add(identifier)
        elif kind == EventKind.FREE:
            alive.discard(identifier)
    return sum(trace.sizes[identifier] == nbytes for identifier in alive)
