"""A step that XLA compiles: Keras turns it on by itself where there is a card.

Built, JobSpec -> HLO of the step -> XLA's buffers -> events of a Trace

The HLO is taken from TensorFlow's own bridge, which lowers for the host here and writes the same
operators. It wants variables that have a value, so each gets
a buffer that nobody ever writes: address space, no memory. The compile itself runs in a process
of its own and needs no card (`estimator.compilers`).

Source: keras 3.15.1 src/trainers/trainer.py (`resolve_auto_jit_compile`),
src/backend/tensorflow/trainer.py.
Not modelled: what XLA picks by trying on the card, and that the first step's allocations of the
uncompiled rest (metrics, input) are beside it.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator.compilers import SCARCE, CompiledMemory, Form, compile_module, target_for
from estimator.compilers import Job as CompileJob
from estimator.compilers.liveness import outline_of
from estimator.errors import EstimateTimeoutError
from estimator.frontends.notebook import Notebook
from estimator.frontends.tensorflow.build import Built
from estimator.frontends.tensorflow.build.job import in_words_of_keras
from estimator.frontends.tensorflow.folding import handle_data
from estimator.frontends.tensorflow.remembered import TOTAL
from estimator.frontends.tensorflow.step import Step, num_replicas, predict_step, train_step
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobPhase, JobSpec, ModelSource
from estimator.trace import Method, Phase, Role, TraceBuilder
from estimator.traits import Traits

SINCE = (2, 16)
"""First TensorFlow whose Keras is 3; Keras 2 compiles only if it is told to."""
STEPS = 2
SECONDS = 40.0
"""How long XLA may take: less than a worker lives, so that something can still be said."""


def is_compiled(spec: JobSpec, version: tuple[int, int]) -> bool:
    """Return whether XLA compiles the step of *spec*: as it says, else as Keras decides.

    Keras decides for `fit` where it sees a card, unless operations have to be deterministic.
    The machine that estimates has no say. Collectives of several replicas stay uncompiled here.
    """
    if "compile" in spec.training.model_fields_set:
        return spec.training.compile.enabled
    is_keras = spec.model.source in (ModelSource.KERAS, ModelSource.FILE)
    is_plain = not spec.runtime.cudnn_deterministic and num_replicas(spec) == 1
    return is_keras and is_plain and version >= SINCE and spec.phase is JobPhase.TRAIN


def trace_compiled(
    spec: JobSpec, built: Built, builder: TraceBuilder, notebook: Notebook, traits: Traits
) -> None:
    """Compile the step of *spec* and record what it does to memory.

    Raises:
        EstimatorError: of the kind that says why XLA does not compile it.
    """
    is_training = spec.phase is JobPhase.TRAIN
    step = train_step(built, spec) if is_training else predict_step(built)
    roles = {id(each.value.handle): Role.PARAMETER for each in built.model.variables}
    if is_training:
        slots = built.model.optimizer.variables
        roles |= {id(each.value.handle): Role.OPTIMIZER for each in slots}
    module, handles, text = hlo_of(step)
    try:
        memory = compiled(module, traits)
    except EstimateTimeoutError:
        memory = _outlined(text())
        builder.method = Method.FORMULA
        notebook.unknown(
            UnknownCode.KERNEL,
            "training.compile",
            "XLA did not compile the step in time: the figure is from what it would fuse",
        )
    note_compile(notebook)
    builder.facts[TOTAL] = str(memory.total)
    fed = len(memory.arguments) - len(handles)
    states = [roles.get(id(each), Role.TEMPORARY) for each in handles]
    _write_events(builder, memory, [*[Role.INPUT] * fed, *states], is_training=is_training)


def hlo_of(step: Step) -> tuple[bytes, list[Any], Callable[[], str]]:
    """Return the `HloModuleProto` of *step*, the handles of its variables in order, and its text.

    Parameters of the module are the batch, then the variables.

    Raises:
        UnsupportedJobError: if Keras or TensorFlow refuses it.
        MemoryError: if the variables have more bytes than this process may map.
    """
    function = tf.function(step.function, jit_compile=True, autograph=False)
    with in_words_of_keras():
        graph = function.get_concrete_function(*step.specs).graph
        handles = [outer for outer, _ in graph.captures if handle_data(outer) is not None]
        if not _may_map(sum(map(_nbytes, handles))):
            raise MemoryError("the variables cannot be mapped")
        _give_values(handles)
        written = function.experimental_get_compiler_ir(*step.specs)
        module: bytes = written(stage="hlo_serialized")
    return module, handles, lambda: str(written(stage="hlo"))


def compiled(module: bytes, traits: Traits) -> CompiledMemory:
    """Return what *module* takes on cards with *traits*, short of memory or not.

    Raises:
        EstimatorError: of the kind that says why XLA does not compile it.
    """
    target = target_for(traits.xla_target)
    memory = compile_module(
        CompileJob(module=module, target=target, form=Form.HLO, seconds=SECONDS)
    )
    card = traits.xla_memory_bytes
    if card is None or memory.total <= SCARCE * card:
        return memory
    target = target_for(traits.xla_target, memory_bytes=card)
    scarce = compile_module(
        CompileJob(module=module, target=target, form=Form.HLO, seconds=SECONDS)
    )
    return min(memory, scarce, key=lambda each: each.total)


def _outlined(text: str) -> CompiledMemory:
    """Return about what the module in *text* takes, from what XLA would fuse."""
    outline = outline_of(text)
    return CompiledMemory(
        arguments=outline.arguments,
        aliased=outline.aliased,
        outputs=outline.outputs,
        temporary=outline.temporary,
    )


def _write_events(
    builder: TraceBuilder, memory: CompiledMemory, roles: Sequence[Role], *, is_training: bool
) -> None:
    """Record variables, then steps: a batch, results, and one block for all between."""
    pairs = list(zip(memory.arguments, roles, strict=True))
    for nbytes, role in pairs:
        if role is not Role.INPUT:
            builder.alloc(nbytes, role)
    if memory.constants:
        builder.alloc(memory.constants, Role.PARAMETER)
    largest = memory.largest[0] if memory.largest else None
    operator = (largest.operator or largest.instruction) if largest else ""
    phase = Phase.BACKWARD if is_training else Phase.FORWARD
    last: list[int] = []
    for number in range(1, STEPS + 1):
        builder.at(step=number, phase=phase, operator=operator, module="")
        batch = [builder.alloc(nbytes, role) for nbytes, role in pairs if role is Role.INPUT]
        results = builder.alloc(memory.outputs, Role.ACTIVATION)
        builder.free(builder.alloc(memory.temporary, Role.TEMPORARY))
        for tensor in (*batch, *last):
            builder.free(tensor)
        last = [results]


def note_compile(notebook: Notebook) -> None:
    """Note what a compile without a card leaves out."""
    notebook.assume(
        AssumptionCode.COMPILE,
        "training.compile",
        "xla",
        "XLA's own buffer assignment, compiled without the card: nothing is autotuned",
    )
    notebook.unknown(
        UnknownCode.KERNEL,
        "training.compile",
        "scratch memory of the convolutions and matrix products that XLA picks by trying them on "
        "the card comes on top",
    )


def _nbytes(handle: Any) -> int:
    data = handle_data(handle)
    size: int = tf.as_dtype(data.dtype).size
    return size * math.prod(int(each.size) for each in data.shape.dim)


def _may_map(nbytes: int) -> bool:
    """Return whether this process may reserve *nbytes*, which it does for a moment to know."""
    try:
        mmap.mmap(-1, max(1, nbytes), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, OverflowError, ValueError):
        return False
    return True


def _give_values(handles: Sequence[Any]) -> None:
    """Let each variable adopt a buffer of its size that is never written."""

    def adopt() -> None:
        for handle in handles:
            data = handle_data(handle)
            shape = [dimension.size for dimension in data.shape.dim]
            empty = tf.raw_ops.Empty(shape=shape, dtype=tf.as_dtype(data.dtype), init=False)
            tf.raw_ops.AssignVariableOp(resource=handle, value=empty)

    tf.function(adopt, autograph=False)()
