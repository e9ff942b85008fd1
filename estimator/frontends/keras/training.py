"""How a Keras model is trained: its optimizer, its loss, and the batches it is fed.

JobSpec, keras.Model -> optimizer, loss, shapes
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobSpec

OPTIMIZERS: Mapping[str, str] = {
    "adadelta": "Adadelta",
    "adafactor": "Adafactor",
    "adagrad": "Adagrad",
    "adam": "Adam",
    "adamax": "Adamax",
    "adamw": "AdamW",
    "ftrl": "Ftrl",
    "lamb": "Lamb",
    "lion": "Lion",
    "muon": "Muon",
    "nadam": "Nadam",
    "rmsprop": "RMSprop",
    "sgd": "SGD",
}
"""The word of a spec -> Keras' class."""
_IMAGE_RANK = 4

Shape = tuple[int, ...]


def optimizer_of(spec: JobSpec) -> Any:
    """Return the optimizer of *spec*, without slots yet.

    Raises:
        UnsupportedJobError: if Keras has none of that name, or not with these states.
    """
    chosen = spec.training.optimizer
    name = OPTIMIZERS.get(chosen.name.lower())
    if name is None or chosen.bits != 32 or chosen.paged:
        what = chosen.name if name is None else f"{chosen.name} with {chosen.bits}-bit states"
        raise UnsupportedJobError(
            f"training.optimizer: '{what}' is not modelled; known: {', '.join(OPTIMIZERS)}",
            code=UnknownCode.OPTIMIZER,
            path="training.optimizer",
        )
    options: dict[str, Any] = {}
    if name in ("SGD", "RMSprop") and chosen.momentum:
        options["momentum"] = chosen.momentum
    if name == "SGD" and chosen.nesterov:
        options["nesterov"] = True
    if name in ("Adam", "AdamW") and chosen.amsgrad:
        options["amsgrad"] = True
    if name == "RMSprop" and chosen.centered:
        options["centered"] = True
    if chosen.weight_decay is not None:
        options["weight_decay"] = chosen.weight_decay
    if spec.training.ema:
        options["use_ema"] = True
    if spec.training.clip_grad_norm:
        options["global_clipnorm"] = 1.0
    if spec.training.gradient_accumulation_steps > 1:
        options["gradient_accumulation_steps"] = spec.training.gradient_accumulation_steps
    return getattr(keras.optimizers, name)(**options)


def loss_of(model: Any, notebook: Notebook) -> Any:
    """Return the usual loss of the model's head: by the activation it ends with."""
    activation = getattr(model.layers[-1], "activation", None) if model.layers else None
    name = getattr(activation, "__name__", "")
    if len(model.outputs) != 1:
        loss: Any = [keras.losses.MeanSquaredError() for _ in model.outputs]
    elif name == "sigmoid":
        loss = keras.losses.BinaryCrossentropy()
    elif len(model.outputs[0].shape) > 1 and (model.outputs[0].shape[-1] or 0) > 1:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=name != "softmax")
    else:
        loss = keras.losses.MeanSquaredError()
    words = getattr(loss, "name", "mean_squared_error for each output")
    notebook.assume(AssumptionCode.DEFAULT, "training.loss", words, "the usual loss of such a head")
    return loss


def target_shapes(model: Any, loss: Any, spec: JobSpec) -> list[tuple[Shape, str]]:
    """Return shape and dtype of what each output is compared with."""
    shapes = [tuple(output.shape) for output in model.outputs]
    if any(None in shape[1:] for shape in shapes):
        fed = [shape for shape, _ in input_shapes(model, spec)]
        computed = model.compute_output_shape(fed[0] if len(fed) == 1 else fed)
        shapes = [computed] if isinstance(computed[0], int | None) else list(computed)
    found = []
    for shape in (sized(shape, spec, batch_size=spec.input.batch_size) for shape in shapes):
        if isinstance(loss, keras.losses.SparseCategoricalCrossentropy):
            found.append((shape[:-1], "int32"))
        else:
            found.append((shape, "float32"))
    return found


def input_shapes(model: Any, spec: JobSpec) -> list[tuple[Shape, str]]:
    """Return shape and dtype of each input of *model* in one batch.

    Raises:
        SpecError: if the model leaves a size open that the spec does not tell.
    """
    return [
        (sized(each.shape, spec, batch_size=spec.input.batch_size), str(each.dtype))
        for each in model.inputs
    ]


def sized(shape: tuple[int | None, ...], spec: JobSpec, *, batch_size: int) -> Shape:
    """Return *shape* with the sizes it leaves open: the batch first, then the job's own.

    Raises:
        SpecError: if the spec does not tell one.
    """
    told = _told(len(shape), spec)
    return tuple(
        batch_size if index == 0 else size if size is not None else told(index)
        for index, size in enumerate(shape)
    )


def _told(rank: int, spec: JobSpec) -> Any:
    given = spec.input
    image: Shape | None = None
    if given.image_size is not None and rank == _IMAGE_RANK:
        channels, height, width = given.image_size
        is_last = keras.config.image_data_format() == "channels_last"
        image = (height, width, channels) if is_last else (channels, height, width)

    def size(index: int) -> int:
        shape = given.shape or image
        if shape is not None and index - 1 < len(shape):
            return shape[index - 1]
        if given.sequence_length is not None:
            return given.sequence_length
        message = f"the model leaves axis {index} of an input open, and nothing tells its size"
        raise SpecError([Problem(path="input", message=message)])

    return size
