"""Models of torchvision that label pixels, clips, or pairs of frames.

    JobSpec, model -> Built

Losses are those of torchvision's own recipes (`references/segmentation`, `video_classification`,
`optical_flow` of 0.29). Shape letters: B batch, C channels, T frames, H height, W width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from estimator.errors import Problem, SpecError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.classification import image_size
from estimator.frontends.pytorch.build.job import Batch, Built, Shapes, stand_in
from estimator.frontends.pytorch.dtypes import WEIGHTS
from estimator.notes import AssumptionCode
from estimator.spec import JobSpec
from estimator.spec.vocabulary import MemoryFormat

SEGMENTATION_SIZE = (3, 520, 520)
"""What the published weights were trained at."""
AUXILIARY_WEIGHT = 0.5
VIDEO_SIZES = {"r3d_18": 112, "mc3_18": 112, "r2plus1d_18": 112}
VIDEO_SIZE = 224
VIDEO_FRAMES = {"mvit_v1_b": 16, "mvit_v2_s": 16, "swin3d_t": 32, "swin3d_s": 32, "swin3d_b": 32}
"""Clips the published weights were trained on; the others take any length."""
FRAMES = 16
FLOW_SIZE = (3, 368, 496)
"""The crop of the first stage of RAFT's recipe."""
FLOW_DECAY = 0.8


def _placed(spec: JobSpec, model: nn.Module) -> torch.dtype:
    """Put *model* in the dtype and memory format of *spec*, and return the dtype."""
    dtype = WEIGHTS[spec.training.precision]
    if dtype is not torch.float32:
        model.to(dtype)
    if spec.runtime.memory_format is MemoryFormat.CHANNELS_LAST:
        model.to(memory_format=torch.channels_last)
    return dtype


def segmenter(spec: JobSpec, model: nn.Module, notebook: Notebook) -> Built:
    """Return *model* with images, a class a pixel, and a cross entropy an output."""
    dtype = _placed(spec, model)
    size = image_size(spec, notebook, SEGMENTATION_SIZE)
    last = spec.runtime.memory_format is MemoryFormat.CHANNELS_LAST

    def make_batch(shapes: Shapes) -> Batch:
        image_BCHW = stand_in(shapes.batch_size, *size, dtype=dtype)
        if last:
            image_BCHW = image_BCHW.to(memory_format=torch.channels_last)
        label_BHW = stand_in(shapes.batch_size, *size[1:], dtype=torch.int64)
        return {"image": image_BCHW, "label": label_BHW}

    def loss(outputs: Any, batch: Batch) -> torch.Tensor:
        total = functional.cross_entropy(outputs["out"], batch["label"], ignore_index=255)
        if "aux" in outputs:
            more = functional.cross_entropy(outputs["aux"], batch["label"], ignore_index=255)
            total = total + AUXILIARY_WEIGHT * more
        return total

    return Built(
        model=model,
        make_batch=make_batch,
        forward=lambda module, batch: module(batch["image"]),
        loss=loss,
        targets=("label",),
        library="torchvision",
    )


def video_classifier(spec: JobSpec, model: nn.Module, notebook: Notebook) -> Built:
    """Return *model* with clips, a label a clip, and a cross entropy."""
    dtype = _placed(spec, model)
    name = spec.model.name
    edge = VIDEO_SIZES.get(name, VIDEO_SIZE)
    channels, height, width = image_size(spec, notebook, (3, edge, edge))
    frames = spec.input.video_frames
    if frames is None:
        frames = VIDEO_FRAMES.get(name, FRAMES)
        notebook.assume(
            AssumptionCode.MODEL_DEFAULT, "input.videoFrames", frames, "absent: the model's own"
        )

    def make_batch(shapes: Shapes) -> Batch:
        clip_BCTHW = stand_in(shapes.batch_size, channels, frames, height, width, dtype=dtype)
        return {"clip": clip_BCTHW, "label": stand_in(shapes.batch_size, dtype=torch.int64)}

    def loss(outputs: Any, batch: Batch) -> torch.Tensor:
        smoothing = spec.training.label_smoothing
        return functional.cross_entropy(outputs, batch["label"], label_smoothing=smoothing)

    return Built(
        model=model,
        make_batch=make_batch,
        forward=lambda module, batch: module(batch["clip"]),
        loss=loss,
        targets=("label",),
        library="torchvision",
    )


def flow(spec: JobSpec, model: nn.Module, notebook: Notebook) -> Built:
    """Return *model* with pairs of frames, their flow, and the loss over all refinements.

    Raises:
        SpecError: for sizes the model does not take.
    """
    dtype = _placed(spec, model)
    size = image_size(spec, notebook, FLOW_SIZE)
    if any(edge % 8 for edge in size[1:]):
        message = f"{size[1]}x{size[2]}: height and width must be multiples of 8 for this model"
        raise SpecError([Problem(path="input.imageSize", message=message)])

    def make_batch(shapes: Shapes) -> Batch:
        first, second = (stand_in(shapes.batch_size, *size, dtype=dtype) for _ in range(2))
        flow_B2HW = stand_in(shapes.batch_size, 2, *size[1:], dtype=dtype)
        valid_BHW = stand_in(shapes.batch_size, *size[1:], dtype=torch.bool)
        return {"first": first, "second": second, "flow": flow_B2HW, "valid": valid_BHW}

    def loss(outputs: Any, batch: Batch) -> torch.Tensor:
        """Return the weighted distance of each refinement (`sequence_loss` of the recipe)."""
        truth = batch["flow"]
        norm_BHW = (truth**2).sum(dim=1).sqrt()
        valid_BHW = batch["valid"] & (norm_BHW < 400)
        flows_NBCHW = torch.stack(outputs)
        distances = (flows_NBCHW - truth).abs()
        means_N = (distances * valid_BHW[:, None]).mean(dim=(1, 2, 3, 4))
        decay = FLOW_DECAY ** torch.arange(len(outputs) - 1, -1, -1, device=truth.device)
        total: torch.Tensor = (decay * means_N).sum()
        return total

    return Built(
        model=model,
        make_batch=make_batch,
        forward=lambda module, batch: module(batch["first"], batch["second"]),
        loss=loss,
        targets=("flow", "valid"),
        library="torchvision",
    )
