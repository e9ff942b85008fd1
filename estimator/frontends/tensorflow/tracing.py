"""Trace a TensorFlow job: its step as a graph, run by our executor on buffers without bytes.

JobSpec, Traits -> Trace

    build (no weights) -> step as a graph -> constants folded -> executor, two steps
                          jit: HLO of the step -> XLA's buffers
"""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf
from keras.src.trainers.trainer import model_supports_jit

from estimator import compilers
from estimator.errors import EstimatorError, TraceError, UnsupportedJobError
from estimator.frontends.horovod import fusion_bytes
from estimator.frontends.notebook import Notebook
from estimator.frontends.tensorflow.build import Built, build_job
from estimator.frontends.tensorflow.build.job import short, unbuildable
from estimator.frontends.tensorflow.jit import is_compiled, trace_compiled
from estimator.frontends.tensorflow.job import Job
from estimator.frontends.tensorflow.recurrent import NOT_CUDNN, run_by_cudnn
from estimator.frontends.tensorflow.remembered import Remembered
from estimator.frontends.tensorflow.settings import calls_of, version_numbers
from estimator.frontends.tensorflow.step import num_replicas
from estimator.frontends.tensorflow.support import check_support
from estimator.frontends.tensorflow.untraced import untraced
from estimator.frontends.tensorflow.weightless import weightless
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobSpec, Strategy
from estimator.trace import AT_MOST, AllocatorKind, Method, Role, Trace, TraceBuilder
from estimator.traits import Traits

SEED = 0


_remembered = Remembered()


def trace(spec: JobSpec, *, traits: Traits, framework: str) -> Trace:
    """Return the trace of *spec*, that of another card like those with *traits* if there is one.

    Raises:
        SpecError: if the spec names options or sizes the model does not take.
        UnsupportedJobError: if a part of the job is not modelled.
        TraceError: if tracing itself fails.
    """
    notebook = Notebook()
    check_support(spec, notebook)
    version = _version(spec, notebook)
    is_jit = is_compiled(spec, version_numbers(version))
    found = _remembered.find(spec, traits, is_jit=is_jit)
    if found is None:
        found = _traced(
            spec,
            traits,
            TraceBuilder(framework=framework, framework_version=version),
            notebook,
            is_jit=is_jit,
        )
        _remembered.keep(spec, traits, found, is_jit=is_jit)
    return found


def _traced(
    spec: JobSpec, traits: Traits, builder: TraceBuilder, notebook: Notebook, *, is_jit: bool
) -> Trace:
    """Return the trace of *spec* that *builder* collects."""
    builder.allocator = AllocatorKind.BFC
    started = time.perf_counter()
    if num_replicas(spec) > 1 and "compile" not in spec.training.model_fields_set:
        builder.method = Method.FORMULA
        notebook.assume(
            AssumptionCode.COMPILE,
            "training.compile",
            "operator by operator",
            "what XLA makes of a step with collectives is not modelled",
        )
    if spec.parallelism.strategy is Strategy.DDP:
        builder.alloc(fusion_bytes(spec, notebook), Role.COMMUNICATION)
    if is_jit:
        compilers.ready()
    with warnings.catch_warnings(), _quiet_collector(), untraced(), weightless() as seen:
        warnings.simplefilter("ignore")
        keras.utils.set_random_seed(SEED)
        built = _build(spec, notebook)
        loaded = time.perf_counter()
        is_jit = is_jit and model_supports_jit(built.model)
        if not (is_jit and _compiled(spec, built, builder, notebook, traits)):
            job = Job(
                spec=spec,
                built=built,
                builder=builder,
                notebook=notebook,
                seen=seen,
                calls=calls_of(spec, traits, builder.framework_version, notebook),
            )
            _guarded(job.run)
            builder.facts["operators"] = str(job.num_nodes)
    if recurrent := run_by_cudnn(built.model):
        builder.method = Method.FORMULA
        builder.facts[AT_MOST] = "recurrent"
        notebook.unknown(UnknownCode.KERNEL, "model", f"{recurrent}: {NOT_CUDNN}")
    builder.facts.update(
        buildSeconds=f"{loaded - started:.3f}",
        runSeconds=f"{time.perf_counter() - loaded:.3f}",
    )
    notebook.write(builder)
    return builder.build(parameters=built.model.count_params())


def _compiled(
    spec: JobSpec, built: Built, builder: TraceBuilder, notebook: Notebook, traits: Traits
) -> bool:
    """Compile the step of *spec*; return False where XLA knows no such card, or cannot be asked.

    Then the step is traced operator by operator, with the interval of a formula.
    """
    try:
        builder.method = Method.COMPILE
        _guarded(lambda: trace_compiled(spec, built, builder, notebook, traits))
    except UnsupportedJobError as error:
        if error.code is not UnknownCode.DEVICE:
            raise
        builder.method = Method.FORMULA
        notebook.assume(
            AssumptionCode.COMPILE,
            "training.compile",
            "operator by operator",
            "XLA's plans for this card are not known: the step is traced as without it",
        )
        return False
    except MemoryError:
        builder.method = Method.FORMULA
        notebook.unknown(
            UnknownCode.KERNEL,
            "training.compile",
            "TensorFlow lowers a step only with its variables mapped, and these are more than this "
            "estimator may map: the step is traced as without XLA",
        )
        return False
    return True


def _version(spec: JobSpec, notebook: Notebook) -> str:
    own = str(tf.__version__)
    if spec.framework_version is not None and spec.framework_version[:1].isdigit():
        return spec.framework_version
    notebook.assume(
        AssumptionCode.FRAMEWORK_VERSION,
        "frameworkVersion",
        own,
        "absent or not a version: the newest this estimator knows",
    )
    return own


def _build(spec: JobSpec, notebook: Notebook) -> Built:
    """Return the model of *spec* without weights.

    Raises:
        UnsupportedJobError: if building fails for a reason Keras gives.
    """
    try:
        return build_job(spec, notebook)
    except (EstimatorError, MemoryError):
        raise
    except RecursionError as error:
        raise unbuildable("the model nests too deep") from error
    except Exception as error:
        raise unbuildable(short(error)) from error


def _guarded(run: Callable[[], None]) -> None:
    """Trace the steps of a job.

    Raises:
        TraceError: for anything but our own errors.
    """
    try:
        run()
    except (EstimatorError, MemoryError):
        raise
    except Exception as error:
        raise TraceError(f"model: tracing failed: {short(error)}") from error


@contextmanager
def _quiet_collector() -> Iterator[None]:
    """Keep the garbage collector still: a graph is a large web of objects that all live on."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
