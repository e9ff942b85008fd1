"""What a compiled step does to a card's memory, as events.

    Lowered, CompiledMemory -> events of a trace

Arguments live as long as the job. A step takes its results that are written over no argument, then
one block for everything between, and gives that back. The next batch is on the card before the last
one is gone; the results of a step are held until the next has its own.
Source: openxla/xla@4336d12e xla/service/gpu/gpu_executable.cc (`GenerateBufferAllocations`).
"""

from __future__ import annotations

from collections.abc import Iterator

from estimator.compilers import CompiledMemory
from estimator.frontends.jax.lowering import Lowered
from estimator.frontends.jax.step import Argument
from estimator.spec import JobPhase, JobSpec
from estimator.trace import Phase, Role, TraceBuilder

STEPS = 2


def arguments_of(module: Lowered, memory: CompiledMemory) -> Iterator[tuple[int, Argument | None]]:
    """Yield the bytes of every argument on a card, and what is known of it."""
    if not module.arguments:
        yield from ((nbytes, None) for nbytes in memory.arguments)
        return
    sizes = dict(zip(module.kept, memory.arguments, strict=True))
    for index, argument in enumerate(module.arguments):
        yield sizes.get(index, module.nbytes[index]), argument


def write_events(
    builder: TraceBuilder, spec: JobSpec, module: Lowered, memory: CompiledMemory
) -> None:
    """Record the job: loaded, then two steps."""
    batch: list[int] = []
    for nbytes, argument in arguments_of(module, memory):
        if argument is not None and argument.is_batch:
            batch.append(nbytes)
        else:
            builder.alloc(nbytes, Role.PARAMETER if argument is None else argument.role)
    if memory.constants:
        builder.alloc(memory.constants, Role.PARAMETER)
    phase = Phase.BACKWARD if spec.phase is JobPhase.TRAIN else Phase.FORWARD
    largest = memory.largest[0] if memory.largest else None
    operator = (largest.operator or largest.instruction) if largest else ""
    waiting = [builder.alloc(n, Role.INPUT) for n in batch * spec.input.prefetch_batches]
    last: list[int] = []
    for step in range(1, STEPS + 1):
        builder.at(step=step, phase=phase, operator=operator, module="")
        inputs = [builder.alloc(nbytes, Role.INPUT) for nbytes in batch]
        results = [builder.alloc(memory.outputs, Role.ACTIVATION)]
        arena = builder.alloc(memory.temporary, Role.TEMPORARY)
        builder.free(arena)
        for tensor in last:
            builder.free(tensor)
        last = [*inputs, *results]
    for tensor in waiting:
        builder.free(tensor)
