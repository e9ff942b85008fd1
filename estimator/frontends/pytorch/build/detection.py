"""Detectors of torchvision: images of any size, lists of boxes, losses of their own.

    JobSpec, model -> Built

How many boxes are proposed, matched and kept depends on values. They are taken at what the model's
configuration allows: every list as long as it may become (`capacity.py`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torchvision.models.detection import KeypointRCNN, MaskRCNN

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.capacity import detection_at_capacity
from estimator.frontends.pytorch.build.classification import image_size
from estimator.frontends.pytorch.build.job import Batch, Built, Shapes, stand_in
from estimator.frontends.pytorch.dtypes import WEIGHTS
from estimator.notes import AssumptionCode
from estimator.spec import JobSpec
from estimator.spec.vocabulary import MemoryFormat

BOXES = 20
"""Objects an image: assumed. COCO's mean is 7; few of its images have more than 20."""
KEYPOINTS = 17
"""Of a person, as in COCO."""


def note_boxes(notebook: Notebook, value: int = BOXES) -> None:
    """Note how many objects an image was taken to have."""
    notebook.assume(
        AssumptionCode.LENGTH,
        "model.task",
        f"{value} objects an image",
        "a spec does not say; proposals, matches and detections are at the model's limits",
    )


def detector(spec: JobSpec, model: Any, notebook: Notebook) -> Built:
    """Return *model* with images and targets; its loss is the sum of those it returns."""
    dtype = WEIGHTS[spec.training.precision]
    if dtype is not torch.float32:
        model.to(dtype)
    if spec.runtime.memory_format is MemoryFormat.CHANNELS_LAST:
        model.to(memory_format=torch.channels_last)
    size = image_size(spec, notebook, _own_size(model))
    note_boxes(notebook)
    masks, keypoints = isinstance(model, MaskRCNN), isinstance(model, KeypointRCNN)

    def target() -> dict[str, torch.Tensor]:
        made = {
            "boxes": stand_in(BOXES, 4, dtype=dtype),
            "labels": stand_in(BOXES, dtype=torch.int64),
        }
        if masks:
            made["masks"] = stand_in(BOXES, *size[1:], dtype=torch.uint8)
        if keypoints:
            made["keypoints"] = stand_in(BOXES, KEYPOINTS, 3)
        return made

    def make_batch(shapes: Shapes) -> Batch:
        images = [stand_in(*size, dtype=dtype) for _ in range(shapes.batch_size)]
        return {"images": images, "targets": [target() for _ in range(shapes.batch_size)]}

    def forward(module: nn.Module, batch: Batch) -> Any:
        if module.training:
            return module(batch["images"], batch["targets"])
        return module(batch["images"])

    def loss(outputs: Any, _: Batch) -> torch.Tensor:
        parts: list[torch.Tensor] = list(outputs.values())
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    return Built(
        model=model,
        make_batch=make_batch,
        forward=forward,
        loss=loss,
        targets=("targets",),
        library="torchvision",
        is_at_most=True,
        changes=detection_at_capacity,
    )


def _own_size(model: Any) -> tuple[int, int, int]:
    """Return the size to which the model itself brings the largest images."""
    transform = model.transform
    if transform.fixed_size is not None:
        width, height = transform.fixed_size
        return 3, int(height), int(width)
    return 3, int(max(transform.min_size)), int(transform.max_size)
