"""Trace a PyTorch job on stand-ins for the card.

JobSpec, Traits -> Trace
"""

from __future__ import annotations

import gc
import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy
import torch
from torch.optim import optimizer as torch_optimizer

from estimator.errors import EstimatorError, TraceError, UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch import patches
from estimator.frontends.pytorch.adapters import with_adapter
from estimator.frontends.pytorch.build import build_job
from estimator.frontends.pytorch.build.companions import with_companions
from estimator.frontends.pytorch.build.job import Built, short
from estimator.frontends.pytorch.build.limits import check_elements
from estimator.frontends.pytorch.cuda_rules.autocast import bodies_visible, region_of
from estimator.frontends.pytorch.cuda_rules.dispatcher import cuda_kernels
from estimator.frontends.pytorch.dtypes import AUTOCAST
from estimator.frontends.pytorch.float8 import facts_of, with_float8
from estimator.frontends.pytorch.inference import Inference
from estimator.frontends.pytorch.kernels import KernelRules, MathSettings
from estimator.frontends.pytorch.lean import with_lean_parts
from estimator.frontends.pytorch.load import on_stand_ins
from estimator.frontends.pytorch.objectives import as_trained, with_objective, without_first
from estimator.frontends.pytorch.quantized import with_quantization
from estimator.frontends.pytorch.record import Recorder
from estimator.frontends.pytorch.standin import StandIn
from estimator.frontends.pytorch.support import check_support, note_kernels
from estimator.frontends.pytorch.training import Trainer
from estimator.frontends.pytorch.versions import Version, parse_version
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobPhase, JobSpec, Precision
from estimator.trace import AT_MOST, Method, Trace, TraceBuilder
from estimator.traits import Traits

SUMS_IN_PLACE_SINCE = (2, 0)
"""Versions whose autograd engine adds dense gradients in place where it may.

Source: pytorch/pytorch#88339 of November 2022, after 1.13. That 2.0 was the first release with it
is derived from the dates.
"""


Builder = Callable[[JobSpec, Notebook], Built]


def trace(spec: JobSpec, *, traits: Traits, framework: str, build: Builder = build_job) -> Trace:
    """Return the trace of *spec*, whose model *build* makes.

    Raises:
        SpecError: if the spec names options or sizes the model does not take.
        UnsupportedJobError: if a part of the job is not modelled.
        TraceError: if tracing itself fails.
    """
    notebook = Notebook()
    check_support(spec, notebook)
    spec = as_trained(spec)
    version_text, version = _version(spec, notebook)
    builder = TraceBuilder(framework=framework, framework_version=version_text)
    recorder = Recorder(
        builder, KernelRules(_settings(spec)), sums_in_place=version >= SUMS_IN_PLACE_SINCE
    )
    started = time.perf_counter()
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(_no_garbage_collection())
        _seed()
        stack.enter_context(cuda_kernels(traits, version))
        built = _build(spec, notebook, build, version)
        elements = check_elements(built.model)
        loaded = time.perf_counter()
        stack.enter_context(_patched(spec, built, recorder, version))
        _run(spec, built, recorder, notebook, version)
        ended = time.perf_counter()
        builder.facts.update(
            operators=str(recorder.num_operators),
            buildSeconds=f"{loaded - started:.3f}",
            runSeconds=f"{ended - loaded:.3f}",
        )
        builder.facts.update(facts_of(built.model))
        if built.is_formula:
            builder.method = Method.FORMULA
        if built.is_at_most:
            builder.facts[AT_MOST] = "boxes"
        for name in sorted(recorder.bounded):
            notebook.unknown(
                UnknownCode.OPERATOR,
                "model",
                f"the size of '{name}' results depends on values; taken at the largest",
            )
        notebook.write(builder)
        return builder.build(parameters=elements)


def _version(spec: JobSpec, notebook: Notebook) -> tuple[str, Version]:
    """Return the version whose rules are followed, as text and as numbers."""
    own = torch.__version__
    text = spec.framework_version
    version = parse_version(text) if text is not None else None
    if text is None or version is None:
        notebook.assume(
            AssumptionCode.FRAMEWORK_VERSION,
            "frameworkVersion",
            own,
            "absent or not a version: the newest this estimator knows",
        )
        fallback = parse_version(own)
        assert fallback is not None
        return own, fallback
    return text, version


def _settings(spec: JobSpec) -> MathSettings:
    return MathSettings(
        benchmark=spec.runtime.cudnn_benchmark,
        deterministic=spec.runtime.cudnn_deterministic,
        matmul_tf32=spec.training.precision is Precision.TF32,
    )


def _build(spec: JobSpec, notebook: Notebook, build: Builder, version: Version) -> Built:
    """Return the job's model on stand-ins, stored, adapted and lean as the job has it.

    Raises:
        UnsupportedJobError: if building fails for a reason the zoo gives.
    """
    try:
        with patches.no_initialisation(), StandIn():
            built = with_companions(without_first(spec), build(spec, notebook), notebook, build)
            built = with_quantization(spec, built, notebook)
            built = with_float8(spec, built, notebook)
            built = with_lean_parts(spec, built, notebook, version)
            built = with_adapter(spec, built, notebook)
            built = with_objective(spec, built, notebook, build)
            for model in (built.model, *built.companions):
                on_stand_ins(model)
            note_kernels(built.model, notebook)
            return built
    except EstimatorError:
        raise
    except RecursionError as error:
        raise _unbuildable("the model nests too deep") from error
    except MemoryError:
        raise  # the worker's own limit: another kind of answer
    except Exception as error:
        raise _unbuildable(short(error)) from error


def _unbuildable(reason: str) -> UnsupportedJobError:
    return UnsupportedJobError(
        f"model: cannot be built: {reason}", code=UnknownCode.MODEL_CONFIG, path="model"
    )


def _patched(spec: JobSpec, built: Built, recorder: Recorder, version: Version) -> ExitStack:
    """Return the changes to torch that a run needs, in force."""
    stack = ExitStack()
    region = region_of(AUTOCAST.get(spec.training.precision), version)
    stack.enter_context(
        patches.module_paths(recorder, built.model, region, companions=built.companions)
    )
    stack.enter_context(built.changes())
    fused = patches.fused_on_stand_ins()
    stack.enter_context(
        patches.replaced((torch_optimizer, "_get_fused_kernels_supported_devices", fused))
    )
    if spec.training.precision in AUTOCAST:
        stack.enter_context(bodies_visible())
    stack.enter_context(recorder)
    return stack


def _run(
    spec: JobSpec, built: Built, recorder: Recorder, notebook: Notebook, version: Version
) -> None:
    """Run the phases of the job.

    Raises:
        TraceError: for anything but our own errors.
    """
    try:
        region = region_of(AUTOCAST.get(spec.training.precision), version)
        job: Trainer | Inference
        if spec.phase is JobPhase.TRAIN:
            job = Trainer(spec, built, recorder, notebook, version=version, region=region)
        else:
            job = Inference(spec, built, recorder, notebook, version=version, region=region)
        job.run()
        recorder.close()
    except (EstimatorError, MemoryError):
        raise
    except Exception as error:
        raise TraceError(f"model: tracing failed: {short(error)}") from error


def _seed() -> None:
    """Let models that draw numbers while they run (masks, dropped layers) draw the same ones."""
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep the collector out of the trace: when it runs must not decide when tensors die."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
