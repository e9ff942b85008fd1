"""The step of a Keras model on JAX, as Keras' own trainer runs it.

    JobSpec -> Step

`JAXTrainer.make_train_function` compiles `train_step` with its state donated; `predict_step` is
compiled without.
Source: keras 3.15.1 `src/backend/jax/trainer.py`.
Not modelled: metrics beyond the loss, callbacks, `steps_per_execution`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import keras

from estimator.frontends.jax.recurrent import run_by_cudnn
from estimator.frontends.jax.step import Argument, Step
from estimator.frontends.jax.weightless import weightless
from estimator.frontends.keras.models import build_model
from estimator.frontends.keras.training import (
    input_shapes,
    loss_of,
    optimizer_of,
    target_shapes,
)
from estimator.frontends.notebook import Notebook
from estimator.spec import CheckpointMode, JobPhase, JobSpec
from estimator.trace import Role


def keras_step(spec: JobSpec, notebook: Notebook) -> Step:
    """Return the training or the prediction step of *spec*.

    Raises:
        SpecError: if the spec names options or sizes the model does not take.
        UnsupportedJobError: if the model is not known.
    """
    is_checkpointed = spec.training.gradient_checkpointing.mode is CheckpointMode.FULL
    with weightless(), keras.RematScope(mode="full") if is_checkpointed else nullcontext():
        model = build_model(spec, notebook)
        inputs = [_batch(*each) for each in input_shapes(model, spec)]
        fed: Any = inputs[0] if len(inputs) == 1 else inputs
        if spec.phase is JobPhase.TRAIN:
            return replace(_training(spec, model, fed, notebook), recurrent=run_by_cudnn(model))
    trainable = _arguments(model.trainable_variables, Role.PARAMETER)
    fixed = _arguments(model.non_trainable_variables, Role.PARAMETER)
    return Step(
        function=lambda state, data: model.predict_step(state, data)[0],
        state=(trainable, fixed),
        batch=(fed,),
        is_donated=False,
        parameters=_elements((*trainable, *fixed)),
        recurrent=run_by_cudnn(model),
    )


def _training(spec: JobSpec, model: Any, fed: Any, notebook: Notebook) -> Step:
    loss = loss_of(model, notebook)
    optimizer = optimizer_of(spec)
    model.compile(optimizer=optimizer, loss=loss)
    model.optimizer.build(model.trainable_variables)
    targets = [_batch(*each) for each in target_shapes(model, loss, spec)]
    trainable = _arguments(model.trainable_variables, Role.PARAMETER)
    fixed = _arguments(model.non_trainable_variables, Role.PARAMETER)
    slots = _arguments(model.optimizer.variables, Role.OPTIMIZER)
    metrics = _arguments(model.metrics_variables, Role.TEMPORARY)
    return Step(
        function=model.train_step,
        state=(trainable, fixed, slots, metrics),
        batch=(fed, targets[0] if len(targets) == 1 else targets),
        is_donated=True,
        parameters=_elements((*trainable, *fixed)),
    )


def _arguments(variables: Iterable[Any], role: Role) -> list[Argument]:
    return [
        Argument(shape=tuple(each.shape), dtype=str(each._dtype), role=role) for each in variables
    ]


def _batch(shape: tuple[int, ...], dtype: str) -> Argument:
    return Argument(shape=shape, dtype=dtype, role=Role.INPUT, is_batch=True)


def _elements(arguments: Iterable[Argument]) -> int:
    return sum(math.prod(each.shape) for each in arguments)
