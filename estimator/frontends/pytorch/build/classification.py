"""Batches and loss of an image classifier, whichever zoo it comes from.

JobSpec, model -> Built
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Batch, Built, Shapes, stand_in
from estimator.frontends.pytorch.dtypes import WEIGHTS
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobSpec, Task
from estimator.spec.vocabulary import MemoryFormat

AUXILIARY_WEIGHT = 0.4


def require_classification(spec: JobSpec) -> None:
    """Refuse tasks other than image classification.

    Raises:
        UnsupportedJobError: if the spec names another task.
    """
    if spec.model.task not in (None, Task.IMAGE_CLASSIFICATION, Task.FEATURE_EXTRACTION):
        raise UnsupportedJobError(
            f"model.task: '{spec.model.task}' is not modelled for {spec.model.source}; "
            "known: image-classification",
            code=UnknownCode.TASK,
            path="model.task",
        )


def image_size(
    spec: JobSpec, notebook: Notebook, default: tuple[int, int, int]
) -> tuple[int, int, int]:
    """Return channels, height and width of the images, noting where the default was taken."""
    if spec.input.image_size is not None:
        return spec.input.image_size
    notebook.assume(
        AssumptionCode.MODEL_DEFAULT,
        "input.imageSize",
        "x".join(str(n) for n in default),
        "absent: the model's own size",
    )
    return default


def classifier(
    spec: JobSpec,
    model: nn.Module,
    *,
    size: tuple[int, ...],
    checkpoint: Callable[[bool | None], None] | None = None,
    is_indexed: bool = False,
) -> Built:
    """Return *model* with batches of images (or vectors) and a cross-entropy loss.

    An *is_indexed* model is fed whole numbers.
    """
    dtype = WEIGHTS[spec.training.precision]
    fed = torch.int64 if is_indexed else dtype
    channels_last = spec.runtime.memory_format is MemoryFormat.CHANNELS_LAST
    smoothing = spec.training.label_smoothing
    if dtype is not torch.float32:
        model.to(dtype)
    if channels_last:
        model.to(memory_format=torch.channels_last)

    def make_batch(shapes: Shapes) -> Batch:
        image = stand_in(shapes.batch_size, *size, dtype=fed)
        if channels_last and image.dim() == 4:
            image = image.to(memory_format=torch.channels_last)
        return {"image": image, "label": stand_in(shapes.batch_size, dtype=torch.int64)}

    def forward(module: nn.Module, batch: Batch) -> Any:
        return module(batch["image"])

    def loss(outputs: Any, batch: Batch) -> torch.Tensor:
        logits, *auxiliary = _logits(outputs)
        total = functional.cross_entropy(logits, batch["label"], label_smoothing=smoothing)
        for extra in auxiliary:
            more = functional.cross_entropy(extra, batch["label"], label_smoothing=smoothing)
            total = total + AUXILIARY_WEIGHT * more
        return total

    return Built(
        model=model,
        make_batch=make_batch,
        forward=forward,
        loss=loss,
        targets=("label",),
        checkpoint=checkpoint,
        library=str(spec.model.source),
    )


def _logits(outputs: Any) -> list[torch.Tensor]:
    """Return the logits of *outputs*, auxiliary heads (GoogLeNet, Inception) after the main one."""
    if isinstance(outputs, torch.Tensor):
        tensors = [outputs]
    else:
        tensors = [value for value in outputs if isinstance(value, torch.Tensor)]
    return [tensor.flatten(2).mean(-1) if tensor.dim() > 2 else tensor for tensor in tensors]
