"""A script, run on stand-ins with a card that looks present: the frontend that traces it.

    train.py, arguments, Shown -> Trace, JobSpec

The script is run once, as `__main__`; a second question for the same kind of card gets the same
trace. What it says of itself is read, the rest are notes.
"""

from __future__ import annotations

import functools
import gc
import os
import runpy
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from estimator.errors import EstimatorError, MemoryLimitError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch import FRAMEWORK
from estimator.frontends.pytorch.cuda_rules.dispatcher import cuda_kernels
from estimator.frontends.pytorch.kernels import KernelRules, MathSettings
from estimator.frontends.pytorch.script.blame import Source
from estimator.frontends.pytorch.script.card import Shown, card_present
from estimator.frontends.pytorch.script.failing import ended_early, failure, too_slow
from estimator.frontends.pytorch.script.loaders import loaders_of
from estimator.frontends.pytorch.script.mixed import Regions, autocast_of
from estimator.frontends.pytorch.script.noted import Noted
from estimator.frontends.pytorch.script.parallel import ranks_of
from estimator.frontends.pytorch.script.reading import job_of
from estimator.frontends.pytorch.script.recorder import ScriptRecorder
from estimator.frontends.pytorch.script.stops import Enough, Extent, TimeUp
from estimator.frontends.pytorch.script.tensors import tensors_of
from estimator.frontends.pytorch.script.watch import Watch, watched
from estimator.frontends.pytorch.script.weights import weights_of
from estimator.frontends.pytorch.versions import Version, parse_version
from estimator.notes import AssumptionCode
from estimator.spec import JobSpec
from estimator.trace import Role, Trace, TraceBuilder
from estimator.traits import Traits

MOST_HELD = 3
"""Times that an `except:` of the script may hold the end of its time."""


@dataclass(slots=True, kw_only=True)
class UserScript:
    """A person's script: the frontend that traces it (`estimator.frontends.Frontend`)."""

    path: Path
    arguments: tuple[str, ...]
    card: Shown
    """The card the script is told of."""
    extent: Extent
    job: JobSpec | None = None
    """What the script turned out to be, once it ran."""
    _trace: Trace | None = field(default=None)

    FRAMEWORK = FRAMEWORK

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:
        """Return the trace of the script's first steps.

        Raises:
            SpecError: if the script fails, or ends before it called a model.
            UnsupportedJobError: for what has no stand-in.
            EstimateTimeoutError: if it takes too long.
            MemoryLimitError: if it wants more of this machine's memory than it may have.
        """
        if self._trace is None:
            self._trace = self._traced(spec, traits)
        return self._trace

    def _traced(self, spec: JobSpec, traits: Traits) -> Trace:
        notebook = Notebook()
        source = Source.of(self.path)
        noted = Noted(notebook, source)
        own = torch.__version__
        version = parse_version(spec.framework_version or own) or parse_version(own)
        assert version is not None
        if spec.framework_version is None:
            notebook.assume(
                AssumptionCode.FRAMEWORK_VERSION,
                "frameworkVersion",
                own,
                "the release the script ran with here",
            )
        builder = TraceBuilder(framework=FRAMEWORK, framework_version=spec.framework_version or own)
        recorder = ScriptRecorder(
            builder, KernelRules(MathSettings()), sums_in_place=True, was_read=noted.was_read
        )
        watch = Watch(recorder, self.extent, at_call=lambda: _follow_settings(recorder))
        regions = Regions(version)
        with _in_force(self.card, recorder, watch, regions, noted, traits, version):
            self._run(watch, source, noted)
            # Before what the script set is put back.
            if not watch.num_calls:
                raise ended_early(self.path)
            self._finish(watch, recorder, noted)
            self.job = job_of(spec, self.path.name, watch, regions, notebook)
        notebook.write(builder)
        return builder.build(parameters=watch.num_weights)

    def _run(self, watch: Watch, source: Source, noted: Noted) -> None:
        """Run the script until it ends or was seen enough of."""
        try:
            with _timed(self.extent.seconds, source):
                _as_main(self.path, self.arguments)
        except Enough:
            return
        except TimeUp as error:
            if watch.steps or (watch.num_calls and not watch.optimizers):
                noted.cut_by_time(self.extent.seconds, watch.steps)
                return
            raise too_slow(self.path, self.extent.seconds, str(error)) from error
        except SystemExit as error:
            if error.code not in (None, 0) and not watch.num_calls:
                raise ended_early(self.path, status=error.code) from error
        except MemoryError as error:
            raise MemoryLimitError(
                f"{self.path.name} wants more of this machine's memory than it may have",
                hint="give more with --memory-limit, or let the script read less data",
            ) from error
        except EstimatorError as error:
            raise failure(self.path, source, error, noted) from error
        except BaseException as error:
            raise failure(self.path, source, error, noted) from error

    def _finish(self, watch: Watch, recorder: ScriptRecorder, noted: Noted) -> None:
        if not watch.num_backward:
            recorder.promote(Role.ACTIVATION)
        recorder.close()
        noted.conclude(watch, recorder)


@contextmanager
def _in_force(
    card: Shown,
    recorder: ScriptRecorder,
    watch: Watch,
    regions: Regions,
    noted: Noted,
    traits: Traits,
    version: Version,
) -> Iterator[None]:
    """Let the card be there, and everything watched, inside the block."""
    was_enabled = gc.isenabled()
    gc.disable()  # when the collector runs must not decide when tensors die
    with ExitStack() as stack:
        stack.callback(gc.enable if was_enabled else _nothing)
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(cuda_kernels(traits, version))
        stack.enter_context(card_present(card, recorder, noted.asked))
        stack.enter_context(tensors_of(recorder))
        stack.enter_context(weights_of(watch, noted.note))
        stack.enter_context(ranks_of(recorder, noted.note))
        stack.enter_context(loaders_of(watch, noted.evaluation_cut))
        stack.enter_context(watched(watch))
        stack.enter_context(autocast_of(regions))
        _forget_answers()
        stack.enter_context(recorder)
        yield


def _as_main(path: Path, arguments: tuple[str, ...]) -> None:
    """Run the script as `python train.py arguments` does; inside a package, as a part of it."""
    folder = path.resolve().parent
    before = sys.argv, [*sys.path]
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(folder))
    try:
        if not (folder / "__init__.py").exists():
            runpy.run_path(str(path.resolve()), run_name="__main__")
            return
        parts = [path.stem]
        while (folder / "__init__.py").exists():
            parts.insert(0, folder.name)
            folder = folder.parent
        sys.path.insert(1, str(folder))
        runpy.run_module(".".join(parts), run_name="__main__", alter_sys=False)
    finally:
        sys.argv, sys.path[:] = before


@contextmanager
def _timed(seconds: float, source: Source) -> Iterator[None]:
    """End the block after *seconds*, with where the script was."""

    held = [0]

    def end(*_: Any) -> None:
        held[0] += 1
        if held[0] > MOST_HELD:
            os.kill(os.getpid(), signal.SIGKILL)  # who started this process says why
        raise TimeUp(source.here() or "")

    before = signal.signal(signal.SIGALRM, end)
    # Once more every second: an `except:` of the script may hold one.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _follow_settings(recorder: ScriptRecorder) -> None:
    """Let kernels be those of the switches the script has set by now."""
    cudnn = torch.backends.cudnn
    settings = MathSettings(
        benchmark=bool(cudnn.benchmark),
        deterministic=bool(cudnn.deterministic) or torch.are_deterministic_algorithms_enabled(),
        matmul_tf32=bool(torch.backends.cuda.matmul.allow_tf32),
        convolution_tf32=bool(cudnn.allow_tf32),
    )
    if settings != recorder.kernels.settings:
        recorder.kernels = KernelRules(settings)


def _forget_answers() -> None:
    """Let libraries that remember whether there is a card ask again."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("transformers.utils", "accelerate.utils")):
            for value in list(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


def _nothing() -> None:
    return None
