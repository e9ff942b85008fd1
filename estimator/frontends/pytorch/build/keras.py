"""Keras models on the torch backend: a Keras model is a module of torch.

    model.name or model.config -> Built

Keras is imported for such a job only. It is told that the card is the stand-in's device, as a text
that equals it: compared with a plain text, Keras makes every tensor anew and loses the gradients.
Not modelled: Keras' own optimizers, which hold what torch's of the same name hold, and its casts of
mixed precision, which are traced as torch's autocast.
Source: keras 3.15.1 `src/backend/torch/core.py` (`get_device`, `convert_to_tensor`).
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import torch
from torch import nn

from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Batch, Built, Shapes, stand_in
from estimator.notes import UnknownCode
from estimator.spec import JobPhase, JobSpec, Precision

BACKEND = "torch"
AUTOCAST = (Precision.AMP_BF16, Precision.AMP_FP16)


class _Meta(str):
    """The name of the stand-in's device, equal to the device itself."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str(other) == str(self)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def build_keras(spec: JobSpec, notebook: Notebook) -> Built:
    """Return the Keras model of *spec* as a module.

    Raises:
        SpecError: if the options or sizes are not those of the model.
        UnsupportedJobError: if there is no such model, or Keras is not there on torch.
    """
    _import()
    models = import_module("estimator.frontends.keras.models")
    training = import_module("estimator.frontends.keras.training")
    casts = spec.training.precision in AUTOCAST
    model = models.build_model(_in_full(spec) if casts else spec, notebook)
    if casts:
        notebook.unknown(
            UnknownCode.PRECISION,
            "training.precision",
            "Keras casts layer by layer; traced as torch's autocast",
        )
    loss = training.loss_of(model, notebook)
    shapes = training.input_shapes(model, spec)
    targets = training.target_shapes(model, loss, spec)
    is_training = spec.phase is JobPhase.TRAIN

    def make_batch(sizes: Shapes) -> Batch:
        names = [
            *(f"input{n}" for n in range(len(shapes))),
            *(f"target{n}" for n in range(len(targets))),
        ]
        return {
            name: stand_in(sizes.batch_size, *shape[1:], dtype=getattr(torch, dtype))
            for name, (shape, dtype) in zip(names, [*shapes, *targets], strict=True)
        }

    def forward(module: nn.Module, batch: Batch) -> Any:
        inputs = [batch[f"input{number}"] for number in range(len(shapes))]
        return module(inputs[0] if len(inputs) == 1 else inputs, training=is_training)

    def loss_value(outputs: Any, batch: Batch) -> torch.Tensor:
        found = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        losses = loss if isinstance(loss, list) else [loss]
        parts = [
            each(batch[f"target{number}"], output)
            for number, (each, output) in enumerate(zip(losses, found, strict=True))
        ]
        total: torch.Tensor = sum(parts[1:], parts[0])
        return total

    return Built(
        model=model,
        make_batch=make_batch,
        forward=forward,
        loss=loss_value,
        targets=tuple(f"target{number}" for number in range(len(targets))),
        library="keras",
    )


def _in_full(spec: JobSpec) -> JobSpec:
    training = spec.training.model_copy(update={"precision": Precision.FP32})
    return spec.model_copy(update={"training": training})


def _import() -> None:
    """Import Keras on torch, its tensors on the stand-in.

    Raises:
        UnsupportedJobError: if it is not installed, or is on another backend in this process.
    """
    os.environ["KERAS_BACKEND"] = BACKEND
    try:
        keras = import_module("keras")
    except ModuleNotFoundError as error:
        raise _missing(f"needs the package '{error.name}', which is not installed") from error
    if keras.config.backend() != BACKEND:
        raise _missing(f"is on the backend '{keras.config.backend()}' in this process")
    import_module("keras.src.utils.module_utils").tensorflow._available = False
    state = import_module("keras.src.backend.common.global_state")
    state.set_global_attribute("torch_device", _Meta("meta"))


def _missing(what: str) -> UnsupportedJobError:
    return UnsupportedJobError(
        f"model.source: 'keras' {what}",
        code=UnknownCode.MODEL,
        path="model.source",
        hint="pip install keras",
    )
