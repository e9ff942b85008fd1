"""Trace a JAX job: its step compiled by XLA for the card.

JobSpec, Traits -> Trace
"""

from __future__ import annotations

import time
import warnings
from functools import lru_cache

import jax

from estimator import compilers
from estimator.compilers import SCARCE, CompiledMemory, Job, compile_module, target_for
from estimator.compilers.liveness import outline_of
from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    TraceError,
    UnsupportedJobError,
)
from estimator.frontends.jax.events import write_events
from estimator.frontends.jax.exported import exported_step, failed_at_file, is_exported
from estimator.frontends.jax.keras_step import keras_step
from estimator.frontends.jax.lowering import Lowered, lowered
from estimator.frontends.jax.mesh import Layout, layout_of
from estimator.frontends.jax.recurrent import IN_PLACE_OF_CUDNN
from estimator.frontends.jax.support import check_support, note_compile
from estimator.frontends.keras.reasons import reason_of
from estimator.frontends.notebook import Notebook
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobSpec
from estimator.trace import AT_MOST, AllocatorKind, Method, Trace, TraceBuilder
from estimator.traits import Traits

SECONDS = 40.0
"""How long XLA may take: less than a worker lives, so that something can still be said."""


def trace(spec: JobSpec, *, traits: Traits, framework: str) -> Trace:
    """Return the trace of *spec*.

    Raises:
        SpecError: if the spec names options or sizes the model does not take.
        UnsupportedJobError: if a part of the job is not modelled.
        EstimateTimeoutError: if XLA does not compile the step in time.
        TraceError: if XLA says what is not understood.
    """
    compilers.ready()
    notebook = Notebook()
    check_support(spec, notebook)
    layout = layout_of(spec)
    version = spec.framework_version
    if version is None:
        version = jax.__version__
        notebook.assume(
            AssumptionCode.FRAMEWORK_VERSION,
            "frameworkVersion",
            version,
            "absent: the newest known",
        )
    builder = TraceBuilder(framework=framework, framework_version=version)
    builder.allocator = AllocatorKind.XLA_CLIENT
    builder.method = Method.COMPILE
    started = time.perf_counter()
    module = _module(spec, layout, notebook)
    built = time.perf_counter()
    try:
        memory = _compiled(module, traits, layout)
    except TraceError as error:
        if not is_exported(spec):
            raise
        raise failed_at_file(error) from error
    if memory is None:
        memory = _outlined(module, builder, notebook)
    note_compile(layout, notebook)
    if module.recurrent:
        builder.method = Method.FORMULA
        builder.facts[AT_MOST] = "recurrent"
        notebook.unknown(UnknownCode.KERNEL, "model", f"{module.recurrent}: {IN_PLACE_OF_CUDNN}")
    write_events(builder, spec, module, memory)
    builder.facts.update(
        buildSeconds=f"{built - started:.3f}",
        compileSeconds=f"{time.perf_counter() - built:.3f}",
        compileCpuSeconds=f"{memory.cpu_seconds:.3f}",
        compileResidentBytes=str(memory.resident_bytes),
        cards=str(layout.num_devices),
        largest="; ".join(
            f"{each.operator or each.instruction} {each.shape}" for each in memory.largest[:4]
        ),
    )
    notebook.write(builder)
    return builder.build(parameters=module.parameters)


def _module(spec: JobSpec, layout: Layout, notebook: Notebook) -> Lowered:
    """Return the module of the step of *spec*.

    Raises:
        UnsupportedJobError: for what Keras or JAX raises at it: sizes, types, layers.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if is_exported(spec):
                return exported_step(spec, layout, notebook)
            return lowered(keras_step(layout.whole(spec), notebook), layout)
    except (EstimatorError, MemoryError):
        raise
    except Exception as error:
        raise UnsupportedJobError(
            f"model: its step cannot be traced: {reason_of(error)}",
            code=UnknownCode.MODEL_CONFIG,
            path="model",
        ) from error


def _compiled(module: Lowered, traits: Traits, layout: Layout) -> CompiledMemory | None:
    """Return what *module* takes: compiled with plenty of memory, then for a card that is short.

    None if XLA is late and the module can be outlined instead.
    """
    try:
        memory = _compile(module.module, traits.xla_target, layout.num_devices, None)
    except EstimateTimeoutError:
        if module.hlo is None or layout.num_devices > 1:
            raise
        return None
    card = traits.xla_memory_bytes
    if card is None or memory.total <= SCARCE * card:
        return memory
    try:
        scarce = _compile(module.module, traits.xla_target, layout.num_devices, card)
    except EstimateTimeoutError:
        return memory
    return min(memory, scarce, key=lambda each: each.total)


def _outlined(module: Lowered, builder: TraceBuilder, notebook: Notebook) -> CompiledMemory:
    """Return about what *module* takes, from what XLA would fuse."""
    assert module.hlo is not None
    outline = outline_of(module.hlo())
    builder.method = Method.FORMULA
    notebook.unknown(
        UnknownCode.KERNEL,
        "framework",
        "XLA did not compile the step in time: the figure is from what it would fuse",
    )
    return CompiledMemory(
        arguments=outline.arguments,
        aliased=outline.aliased,
        outputs=outline.outputs,
        temporary=outline.temporary,
    )


@lru_cache(maxsize=16)
def _compile(
    module: bytes, target: str | None, num_devices: int, memory_bytes: int | None
) -> CompiledMemory:
    """Return what *module* takes: cards of one kind that have memory enough share a compile."""
    chosen = target_for(target, num_devices=num_devices, memory_bytes=memory_bytes)
    return compile_module(Job(module=module, target=chosen, seconds=SECONDS))
