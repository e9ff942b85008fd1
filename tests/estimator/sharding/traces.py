"""Small traces of a model of equal layers, and what is asked of one that was rewritten.

sizes -> Trace; Trace -> live bytes by role at the end of each phase, faults
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from estimator.spec import JobSpec, parse_spec
from estimator.trace import EventKind, Phase, Role, Trace, TraceBuilder

LAYERS = 4
LAYER, ROOT = 800_000, 1_600_000
"""Bytes of the weights of a layer, and of the embedding and the head together, in 16 bits."""
ELEMENTS = (LAYERS * LAYER + ROOT) // 2
ACTIVATION = 4_096
STEPS = 2


def spec_of(**changes: Any) -> JobSpec:
    """Return a job whose parallelism is that of *changes*; `training` among them."""
    training = {"precision": "bf16", **changes.pop("training", {})}
    return parse_spec(
        {
            "framework": "pytorch",
            "model": {"source": "layers", "name": "layers"},
            "input": {"batchSize": 1},
            "training": training,
            "parallelism": changes,
        }
    )


def whole_trace(*, num_layers: int = LAYERS, trained_bytes: int | None = None) -> Trace:
    """Return two steps of the whole job with Adam, gradients freed before the next step.

    With *trained_bytes*, so many of each layer are trained, and nothing of the root.
    """
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    names = [f"model.layers.{number}" for number in range(num_layers)]
    for name in ("model.embed", "lm_head"):
        builder.at(step=0, phase=Phase.LOAD, operator="", module=name)
        builder.alloc(ROOT // 2, Role.PARAMETER)
    for name in names:
        builder.at(step=0, phase=Phase.LOAD, operator="", module=f"{name}.linear")
        frozen = 0 if trained_bytes is None else LAYER - trained_bytes
        if frozen:
            builder.alloc(frozen, Role.PARAMETER)
        builder.alloc(LAYER - frozen, Role.PARAMETER)
    for step in range(1, STEPS + 1):
        _step(builder, names, step, trained_bytes)
    return builder.build(parameters=ELEMENTS)


def _step(builder: TraceBuilder, names: list[str], step: int, trained: int | None) -> None:
    kept = []
    for name in names:
        builder.at(step=step, phase=Phase.FORWARD, operator="mm", module=f"{name}.linear")
        kept.append(builder.alloc(ACTIVATION, Role.ACTIVATION))
    gradients = []
    if trained is None:
        builder.at(step=step, phase=Phase.BACKWARD, operator="mm", module="lm_head")
        gradients.append(builder.alloc(ROOT // 2, Role.GRADIENT))
    for name in reversed(names):
        builder.at(step=step, phase=Phase.BACKWARD, operator="mm", module=f"{name}.linear")
        gradients.append(builder.alloc(trained or LAYER, Role.GRADIENT))
        builder.free(kept.pop())
    if trained is None:
        builder.at(step=step, phase=Phase.BACKWARD, operator="embed", module="model.embed")
        gradients.append(builder.alloc(ROOT // 2, Role.GRADIENT))
    builder.at(step=step, phase=Phase.OPTIMIZER, operator="adam", module="")
    for gradient in gradients:
        if step == 1:
            for _ in range(2):
                builder.alloc(builder.sizes[gradient], Role.OPTIMIZER)
    for gradient in gradients:
        builder.free(gradient)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Live bytes by role: at the end of a phase, and at its most."""

    step: int
    phase: Phase
    end: tuple[int, ...]
    most: tuple[int, ...]


def phases(trace: Trace) -> list[Live]:
    """Return what is alive in each phase, in order."""
    found: list[Live] = []
    live = [0] * len(Role)
    most = list(live)
    when: tuple[int, Phase] | None = None
    for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        where = trace.place_table[place]
        if when is not None and (where.step, where.phase) != when:
            found.append(Live(step=when[0], phase=when[1], end=tuple(live), most=tuple(most)))
            most = list(live)
        when = (where.step, where.phase)
        if kind == EventKind.ALLOC:
            live[trace.roles[tensor]] += trace.sizes[tensor]
        elif kind == EventKind.FREE:
            live[trace.roles[tensor]] -= trace.sizes[tensor]
        if sum(live) > sum(most):
            most = list(live)
    assert when is not None
    return [*found, Live(step=when[0], phase=when[1], end=tuple(live), most=tuple(most))]


def phase(trace: Trace, step: int, name: Phase) -> Live:
    """Return what is alive in one phase."""
    return next(each for each in phases(trace) if (each.step, each.phase) == (step, name))


def faults(trace: Trace) -> list[str]:
    """Return what no allocator could do: tensors made twice, or freed while not there."""
    alive: set[int] = set()
    found = []
    made: set[int] = set()
    for event, (kind, tensor) in enumerate(zip(trace.kinds, trace.ids, strict=True)):
        if kind == EventKind.ALLOC:
            if tensor in made:
                found.append(f"event {event}: {tensor} is made twice")
            made.add(tensor)
            alive.add(tensor)
        elif kind == EventKind.FREE:
            if tensor not in alive:
                found.append(f"event {event}: {tensor} is freed but not there")
            alive.discard(tensor)
    return found
