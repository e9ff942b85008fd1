"""A training job: its tensors at load, then whole steps.

    Built, JobSpec -> events

Two steps: the first makes the optimizer's state, the second has it during backward. A compiled
model that is recorded in its second step has a third (`graphs.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn

from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Built, Shapes
from estimator.frontends.pytorch.checkpointing import with_checkpoints
from estimator.frontends.pytorch.clipping import LossScale, clip
from estimator.frontends.pytorch.dtypes import DTYPES
from estimator.frontends.pytorch.evaluation import evaluate
from estimator.frontends.pytorch.graphs import execution_of
from estimator.frontends.pytorch.load import load_model
from estimator.frontends.pytorch.offloading import Offload
from estimator.frontends.pytorch.optimizers import Parameters, Stepper, make_optimizer
from estimator.frontends.pytorch.parallel import BucketViews, bucket_sizes
from estimator.frontends.pytorch.prefetch import Prefetcher
from estimator.frontends.pytorch.record import Recorder
from estimator.frontends.pytorch.versions import Version
from estimator.frontends.pytorch.zero_grad import zero_grad_of
from estimator.notes import UnknownCode
from estimator.spec import JobSpec, Precision, Strategy
from estimator.trace import MANAGED_STREAM, Phase, Role

MICRO_STEPS = 2
"""Micro-steps traced of an accumulation: the first makes gradients, later ones add to them."""


class Trainer:
    """Runs the phases of a training job while the recorder watches."""

    def __init__(
        self,
        spec: JobSpec,
        built: Built,
        recorder: Recorder,
        notebook: Notebook,
        *,
        version: Version,
        region: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.spec = spec
        self.built = built
        self.recorder = recorder
        self.notebook = notebook
        self.version = version
        self.model = built.model.train()
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.shapes = Shapes(
            batch_size=spec.input.batch_size, sequence_length=spec.input.sequence_length
        )
        self.zero_grad = zero_grad_of(spec, notebook, version)
        self.execution = execution_of(
            spec,
            built,
            recorder,
            notebook,
            version=version,
            set_to_none=self.zero_grad.set_to_none,
        )
        self.kept: dict[str, Any] = {}
        self.offloaded: Callable[[], AbstractContextManager[None]] = (
            Offload(self.model) if spec.training.activation_offload else nullcontext
        )
        self.region = region
        self.masters: Parameters = ()
        self.averaged: list[torch.Tensor] = []
        self.loss_scale: LossScale | None = None
        self.optimizer: Stepper
        self.batches: Prefetcher

    def run(self) -> None:
        """Load the model, run the steps, evaluate if the job does."""
        self._load()
        steps = self.execution.num_runs
        for step in range(1, steps + 1):
            self._step(step)
            if step < steps and self._empties_cache():
                self.recorder.builder.empty_cache()
        if self.spec.training.evaluation is not None:
            self._evaluate(steps + 1)

    def _load(self) -> None:
        recorder, training = self.recorder, self.spec.training
        load_model(recorder, self.model, *self.built.companions)
        if not self.parameters:
            message = "has nothing to train; a job that trains nothing is phase: infer"
            raise SpecError([Problem(path="model", message=message)])
        with_checkpoints(
            self.built, training.gradient_checkpointing, is_compiled=training.compile.enabled
        )
        trained: Parameters = self.parameters
        if training.master_weights:
            with recorder.making(Role.OPTIMIZER):
                self.masters = [nn.Parameter(p.detach().float()) for p in self.parameters]
            trained = self.masters
        if training.ema:
            with recorder.making(Role.PARAMETER):
                self.averaged = [tensor.detach().clone() for tensor in self._averaged_of()]
        parallel = self.spec.parallelism
        if parallel.strategy is Strategy.DDP:
            if parallel.gradient_as_bucket_view:
                with recorder.making(Role.GRADIENT):
                    self.kept["buckets"] = BucketViews(self.parameters)
            else:
                recorder.communication(bucket_sizes(self.parameters, parallel.bucket_bytes))
        self.batches = Prefetcher(
            recorder,
            lambda: self.built.make_batch(self.shapes),
            num_ahead=self.spec.input.prefetch_batches,
        )
        with recorder.making(Role.OPTIMIZER):
            if training.precision is Precision.AMP_FP16:
                self.loss_scale = LossScale()
            self.optimizer = self._optimizer_of(trained)
        if training.optimizer.in_backward:
            self._step_in_backward()

    def _optimizer_of(self, parameters: Parameters) -> Stepper:
        """Return the job's optimizer over *parameters*."""
        modules = (each for each in self.model.modules() if isinstance(each, nn.Embedding))
        embeddings = frozenset(id(each.weight) for each in modules)
        return make_optimizer(
            self.spec,
            parameters,
            self.notebook,
            self.version,
            embeddings=embeddings,
            managed=partial(self.recorder.on_stream, MANAGED_STREAM),
        )

    def _averaged_of(self) -> tuple[torch.Tensor, ...]:
        """Return what an exponential moving average follows."""
        return (*self.model.parameters(), *self.model.buffers())

    def _step_in_backward(self) -> None:
        """Give each parameter an optimizer that runs as soon as its gradient is there."""
        if self.masters or self.spec.training.gradient_accumulation_steps > 1:
            raise UnsupportedJobError(
                "training.optimizer.inBackward: not modelled with master weights or accumulation",
                code=UnknownCode.OPTIMIZER,
                path="training.optimizer.inBackward",
            )
        steppers = {id(p): self._optimizer_of([p]) for p in self.parameters}
        recorder = self.recorder

        def update(parameter: torch.Tensor) -> None:
            known = recorder.known()
            steppers[id(parameter)].step()
            recorder.promote_new(known, Role.OPTIMIZER)
            parameter.grad = None

        for parameter in self.parameters:
            parameter.register_post_accumulate_grad_hook(update)  # type: ignore[no-untyped-call]

    def _step(self, step: int) -> None:
        accumulate = self.spec.training.gradient_accumulation_steps
        self.recorder.enter(Phase.FORWARD, step=step)
        if not self.zero_grad.after_step:
            self._clear_gradients()
        for _ in range(min(accumulate, MICRO_STEPS)):
            self._micro_step(step)
        self.recorder.enter(Phase.OPTIMIZER, step=step)
        if not self.spec.training.optimizer.in_backward:
            self._update()
        self.recorder.promote(Role.OPTIMIZER)
        if self.zero_grad.after_step:
            self._clear_gradients()

    def _micro_step(self, step: int) -> None:
        recorder, keep = self.recorder, self.spec.training.keep_outputs
        recorder.enter(Phase.FORWARD, step=step)
        batch = self.kept["batch"] = self.batches.next()
        with self.region():
            with torch.no_grad():
                self.built.run_companions(self.shapes)
            with self.offloaded():
                outputs = self._outputs(self.execution.forward(batch))
            if keep:
                self.kept["outputs"] = outputs
            loss = self.built.loss(outputs, batch)
            if keep:
                self.kept["loss"] = loss
        del outputs
        recorder.promote(Role.ACTIVATION)
        recorder.enter(Phase.BACKWARD, step=step)
        if self.loss_scale is not None:
            loss = self.loss_scale.scaled(loss)
        with self.execution.backward():
            loss.backward()  # type: ignore[no-untyped-call]
        del loss
        recorder.set_role((p.grad for p in self.parameters if p.grad is not None), Role.GRADIENT)

    def _outputs(self, outputs: Any) -> Any:
        """Return *outputs*, made wider if the trainer does that."""
        dtype = self.spec.training.output_dtype
        return outputs if dtype is None else _converted(outputs, DTYPES[dtype])

    def _update(self) -> None:
        if not self.masters:
            self._scale_gradients(self.parameters)
            self.optimizer.step()
        else:
            self._update_masters()
        if self.loss_scale is not None:
            self.loss_scale.update()
        if self.averaged:
            self._update_average()

    def _update_masters(self) -> None:
        """Step in fp32, and copy the result into the 16-bit weights."""
        for master, parameter in zip(self.masters, self.parameters, strict=True):
            if parameter.grad is not None:
                with self.recorder.making(Role.GRADIENT):
                    master.grad = parameter.grad.float()
        self._scale_gradients(self.masters)
        self.optimizer.step()
        with torch.no_grad():
            for master, parameter in zip(self.masters, self.parameters, strict=True):
                master.grad = None
                parameter.copy_(master)

    def _scale_gradients(self, parameters: Parameters) -> None:
        """Undo the loss scale and clip, where the job does."""
        gradients = [p.grad for p in parameters if p.grad is not None]
        if self.loss_scale is not None and gradients:
            self.loss_scale.unscale(gradients)
        if self.spec.training.clip_grad_norm and gradients:
            clip(parameters, self.version)

    def _update_average(self) -> None:
        """Move the average towards the weights, one tensor after the other.

        Source: `ema_v.copy_(decay * ema_v + (1 - decay) * model_v)` of timm's ModelEmaV2 and of
        torch.optim.swa_utils, the form that takes most; later ones work in place.
        """
        with torch.no_grad():
            for average, tensor in zip(self.averaged, self._averaged_of(), strict=True):
                if average.is_floating_point():
                    average.copy_(0.9 * average + 0.1 * tensor)
                else:
                    average.copy_(tensor)

    def _clear_gradients(self) -> None:
        for parameter in self.parameters:
            if parameter.grad is None:
                continue
            if self.zero_grad.set_to_none:
                parameter.grad = None
            else:
                parameter.grad.zero_()

    def _empties_cache(self) -> bool:
        empty = self.spec.training.empty_cache
        return bool(empty.every_steps) or empty.before_longest

    def _evaluate(self, step: int) -> None:
        kept = evaluate(
            self.spec,
            self.built,
            self.recorder,
            self.notebook,
            execution=self.execution,
            region=self.region,
            step=step,
        )
        self.kept |= kept


def _converted(value: Any, dtype: torch.dtype) -> Any:
    """Return *value* with its floating tensors in *dtype*."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, dict):
        for name, item in list(value.items()):
            value[name] = _converted(item, dtype)
        return value
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_converted(item, dtype) for item in value)
    return value
