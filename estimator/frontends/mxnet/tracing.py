"""Plan an MXNet job and write it down as a trace.

JobSpec -> Trace
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

from estimator.errors import EstimatorError, TraceError
from estimator.frontends.horovod import fusion_bytes
from estimator.frontends.mxnet import cards, whole
from estimator.frontends.mxnet.bound import Bound, bind
from estimator.frontends.mxnet.errors import invalid
from estimator.frontends.mxnet.events import Recorder
from estimator.frontends.mxnet.fusion import FUSED, fused, is_fused
from estimator.frontends.mxnet.gluon import Graph, Loop
from estimator.frontends.mxnet.gluon_loss import LABEL, stand_in, with_loss
from estimator.frontends.mxnet.graph import Entry, Node
from estimator.frontends.mxnet.job import Execution, Job, job_of
from estimator.frontends.mxnet.optimizers import num_states, state_bytes
from estimator.frontends.mxnet.support import check_support
from estimator.frontends.mxnet.versions import LATEST, Release, release_of
from estimator.frontends.notebook import Notebook
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobPhase, JobSpec, Strategy
from estimator.trace import AllocatorKind, Method, Phase, Role, Trace, TraceBuilder

STEPS = 2
"""The first step makes the optimizer's states, the second has them from the start."""


def trace(spec: JobSpec, *, framework: str) -> Trace:
    """Return what *spec* does to a card's memory.

    Raises:
        SpecError: if the spec names models, options or sizes that MXNet does not take.
        UnsupportedJobError: if an operator or a part of the job is not modelled.
        TraceError: if planning itself fails.
    """
    started = time.perf_counter()
    notebook = Notebook()
    check_support(spec)
    trains = spec.phase is JobPhase.TRAIN
    if trains:
        num_states(spec.training.optimizer)
    release = _release(spec, notebook)
    builder = TraceBuilder(
        framework=framework,
        framework_version=release.text,
        method=Method.PLAN,
        allocator=AllocatorKind.POOL,
    )
    try:
        with _no_garbage_collection():
            job = job_of(spec, release, notebook)
            training = _Training(spec, job, Recorder(builder, trains=trains), release)
            if spec.parallelism.strategy is Strategy.DDP:
                training.fusion_bytes = fusion_bytes(spec, notebook)
            bound = training.run()
    except EstimatorError:
        raise
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        if spec.model.config:
            # A symbol is people's input: what a rule stumbles over was not written by us.
            raise invalid(
                "an operator is not called as MXNet takes it: its inputs or its attributes "
                f"({error!r:.80})",
                path="model.config",
            ) from error
        raise TraceError(f"model: planning failed: {error}") from error
    _note(bound, trains=trains, notebook=notebook)
    builder.facts.update(
        operators=str(sum(not node.is_variable for node in bound.order)),
        execution=job.execution.value,
        runSeconds=f"{time.perf_counter() - started:.3f}",
    )
    notebook.write(builder)
    return builder.build(parameters=sum(_entry(node).elements for node in bound.trained))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep the collector out: it would walk a growing graph, in which nothing is a cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _entry(node: Node) -> Entry:
    return Entry(node, 0)


def _release(spec: JobSpec, notebook: Notebook) -> Release:
    release = release_of(spec.framework_version)
    if release is None:
        notebook.assume(
            AssumptionCode.FRAMEWORK_VERSION,
            "frameworkVersion",
            LATEST.text,
            "absent or not a version of 0.x or 1.x: the newest this estimator knows",
        )
        return LATEST
    return release


class _Training:
    """Records one job: what is loaded, then steps."""

    def __init__(self, spec: JobSpec, job: Job, recorder: Recorder, release: Release) -> None:
        self.spec = spec
        self.job = job
        self.recorder = recorder
        self.trains = recorder.trains
        self.fuses = release.fuses_pointwise and is_fused(spec.runtime.env)
        parallel = spec.parallelism
        self.num_cards = parallel.world_size or parallel.data_parallel
        self.fusion_bytes = 0

    def run(self) -> Bound:
        """Record the job and return its graph."""
        if self.job.execution is Execution.WHOLE:
            return self._whole()
        return self._gluon()

    def _whole(self) -> Bound:
        bound = bind(self.job.heads, self.job.inputs, is_trained=self.trains)
        if self.fuses:
            bound = fused(bound)
        self._load(bound, feeds=True)
        whole.allocate_plan(self.recorder, bound)
        used = whole.used_of(bound)
        for step in range(1, self._steps() + 1):
            whole.run_step(self.recorder, bound, used, step=step)
            self._update(bound, step)
        return bound

    def _gluon(self) -> Bound:
        job, is_planned = self.job, self.job.execution is not Execution.IMPERATIVE
        heads = list(job.heads)
        inputs = job.inputs | {LABEL}
        if job.takes_loss and not is_planned:
            heads = [with_loss(heads[0])]
        bound = bind(heads, inputs, is_trained=self.trains, is_whole=False)
        if self.fuses and is_planned:
            bound = fused(bound)
        graphs = [Graph(self.recorder, bound, job.execution)]
        self._load(bound, feeds=False)
        if job.takes_loss and is_planned:
            loss = with_loss(stand_in(heads[0]))
            apart = bind([loss], inputs, is_trained=True, is_whole=False)
            graphs.append(Graph(self.recorder, apart, Execution.IMPERATIVE))
        fed = [
            _entry(node).nbytes
            for graph in graphs
            for node in graph.bound.forward
            if node.is_variable and node.name in inputs
        ]
        self.recorder.at("prefetch", "")
        for nbytes in fed * self.spec.input.prefetch_batches:
            self.recorder.alloc(nbytes, Role.INPUT)
        loop = Loop(self.recorder, graphs, fed, trains=self.trains)
        for step in range(1, self._steps() + 1):
            loop.step(step)
            self._update(bound, step)
        return bound

    def _steps(self) -> int:
        return STEPS if self.trains else 1

    def _load(self, bound: Bound, *, feeds: bool) -> None:
        """Record parameters, states and gradients; a bound executor's inputs too."""
        recorder = self.recorder
        trained = set(bound.trained)
        for node in bound.forward:
            if not node.is_variable or (node.name in self.job.inputs and not feeds):
                continue
            if node.name == LABEL:
                continue
            recorder.at("", node.name)
            is_fed = node.name in self.job.inputs
            nbytes = _entry(node).nbytes
            recorder.alloc(nbytes, Role.INPUT if is_fed else Role.PARAMETER)
            if self.trains and node in trained:
                recorder.alloc(nbytes, Role.GRADIENT)

    def _update(self, bound: Bound, step: int) -> None:
        """Record the update after a step: the first makes what the job keeps."""
        if not self.trains:
            return
        recorder = self.recorder
        recorder.enter(Phase.OPTIMIZER, step=step)
        if step > 1:
            return
        owned = [_entry(node) for node in bound.trained]
        strategy = self.spec.parallelism.strategy
        if strategy is Strategy.DP and self.num_cards > 1:
            owned = cards.share_of(owned, self.num_cards)
            cards.open_store(recorder, owned, self.num_cards)
        elif strategy is Strategy.DDP:
            cards.open_fusion_buffer(recorder, self.fusion_bytes)
        training = self.spec.training
        for entry in owned:
            recorder.at("", entry.node.name)
            for nbytes in state_bytes(
                training.optimizer, entry, has_master=training.master_weights
            ):
                recorder.alloc(nbytes, Role.OPTIMIZER)


def _note(bound: Bound, *, trains: bool, notebook: Notebook) -> None:
    """Name what the figure rests on."""
    operators = {node.operator for node in bound.forward}
    if any(node.operator == FUSED for node in bound.order):
        notebook.assume(
            AssumptionCode.COMPILE,
            "runtime.env.MXNET_USE_FUSION",
            "1",
            "chains of element-wise operators run as one on a GPU; the rule is read in MXNet's "
            "source and was not compared with a card",
        )
    if "RNN" in operators:
        notebook.unknown(
            UnknownCode.KERNEL,
            "model",
            "what cuDNN keeps of recurrent layers for backward, and its workspace, are assumed",
        )
    if "Dropout" in operators and trains:
        notebook.assume(
            AssumptionCode.KERNEL_WORKSPACE,
            "model",
            "8 MiB each",
            "the states of cuDNN's dropout, at most four of them",
        )
