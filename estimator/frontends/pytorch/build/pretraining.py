"""What transformers models are pre-trained on, where it is more than tokens.

    parameters of forward, Sizes -> the targets of a batch

Which patches and questions are hidden has values where models count them. Shape letters: B batch,
S sequence, P patches.
"""

from __future__ import annotations

from typing import Any

import torch

from estimator.frontends.pytorch.build.job import Batch, Shapes, stand_in
from estimator.frontends.pytorch.build.placeholders import selecting
from estimator.frontends.pytorch.build.sizes import REGIONS, Sizes
from estimator.notes import AssumptionCode

HIDDEN = 0.9
"""Share of a clip's patches that is hidden (VideoMAE's pre-training script, `--mask_ratio`)."""
QUESTIONS = 10
"""Spans of a text that are asked for (Splinter): assumed."""
CODEBOOK_EDGE = 8
"""Pixels along an edge that FLAVA's codebook makes one code of: three pools of two."""
WHOLE = torch.int64


def pre_training(sizes: Sizes, model: Any, parameters: set[str], shapes: Shapes) -> Batch | None:
    """Return what *model* is trained on; None: labels, or nothing."""
    if "mask_time_indices" in parameters:
        return _hidden_frames(sizes, model, parameters, shapes)
    if "question_positions" in parameters:
        return _questions(sizes, shapes)
    if "codebook_pixel_values" in parameters:
        return _codebook(sizes, shapes)
    if "sentence_image_labels" in parameters:
        return _regions_too(sizes, shapes)
    if "bool_masked_pos" in parameters and hasattr(model.config, "tubelet_size"):
        return _hidden_patches(sizes, model, shapes)
    return None


def _hidden_frames(sizes: Sizes, model: Any, parameters: set[str], shapes: Shapes) -> Batch:
    """Return which frames of a recording are hidden, and what they are told from."""
    frames = int(model._get_feat_extract_output_lengths(sizes.samples()))
    hidden: Batch = {"mask_time_indices": stand_in(shapes.batch_size, frames, dtype=torch.bool)}
    if "sampled_negative_indices" in parameters:
        axes = (shapes.batch_size, frames, model.config.num_negatives)
        hidden["sampled_negative_indices"] = stand_in(*axes, dtype=WHOLE)
    return hidden


def _questions(sizes: Sizes, shapes: Shapes) -> Batch:
    sizes.notebook.assume(
        AssumptionCode.LENGTH, "model.task", f"{QUESTIONS} questions a text", "a spec does not say"
    )
    names = ("question_positions", "start_positions", "end_positions")
    return {name: stand_in(shapes.batch_size, QUESTIONS, dtype=WHOLE) for name in names}


def _regions_too(sizes: Sizes, shapes: Shapes) -> Batch:
    """Return a label a token and a region, and whether image and text belong together."""
    tokens = sizes.length(shapes) + REGIONS
    return {
        "labels": stand_in(shapes.batch_size, tokens, dtype=WHOLE),
        "sentence_image_labels": stand_in(shapes.batch_size, dtype=WHOLE),
    }


def _codebook(sizes: Sizes, shapes: Shapes) -> Batch:
    """Return tokens and patches to be found, and the image the codebook makes codes of (FLAVA)."""
    batch, length = shapes.batch_size, sizes.length(shapes)
    _, height, width = sizes.image()
    rows, columns = height // sizes.patch(), width // sizes.patch()
    small = (rows * CODEBOOK_EDGE, columns * CODEBOOK_EDGE)
    return {
        "input_ids_masked": stand_in(batch, length, dtype=WHOLE),
        "mlm_labels": stand_in(batch, length, dtype=WHOLE),
        "itm_labels": stand_in(batch, dtype=WHOLE),
        "bool_masked_pos": stand_in(batch, rows * columns, dtype=torch.bool),
        "codebook_pixel_values": stand_in(batch, 3, *small, dtype=sizes.dtype),
    }


def _hidden_patches(sizes: Sizes, model: Any, shapes: Shapes) -> Batch:
    """Return which patches of a clip are hidden: as many in every sample."""
    _, height, width = sizes.image()
    edge = sizes.patch()
    tubes = sizes.frames(16) // model.config.tubelet_size
    patches = tubes * (height // edge) * (width // edge)
    return {"bool_masked_pos": _hidden(shapes.batch_size, patches, int(HIDDEN * patches))}


class _Hidden(torch.Tensor):
    """A mask of which is known how much it hides, and how much its opposite does.

    What is known of values does not follow a `~`, and models select by both.
    """

    opposite: torch.Tensor

    @classmethod
    def __torch_function__(cls, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return what *func* returns for plain tensors."""
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    def __invert__(self) -> torch.Tensor:
        return self.opposite


def _hidden(batch: int, patches: int, count: int) -> torch.Tensor:
    """Return a mask that hides *count* of *patches* in every sample."""
    mask = selecting(batch, patches, count).as_subclass(_Hidden)
    mask.opposite = selecting(batch, patches, patches - count)
    return mask
