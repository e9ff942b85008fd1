"""The labels a transformers model is trained on.

    Head, Sizes -> what makes the labels of a batch

Shape letters: B batch, S sequence, T target, H height, W width, N objects.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from estimator.frontends.pytorch.build.detection import BOXES, note_boxes
from estimator.frontends.pytorch.build.heads import Head
from estimator.frontends.pytorch.build.job import Batch, Shapes, stand_in
from estimator.frontends.pytorch.build.pretraining import pre_training
from estimator.frontends.pytorch.build.sizes import Sizes

Maker = Callable[[Shapes], Batch]

NAMES = (
    "labels",
    "start_positions",
    "end_positions",
    "next_sentence_label",
    "sentence_order_label",
    "mask_labels",
    "class_labels",
    "bool_masked_pos",
    "return_loss",
    "sampled_negative_indices",
    "mask_time_indices",
    "future_values",
    "future_time_features",
    "future_observed_mask",
)
"""Keys of a batch that only training needs."""

WHOLE = torch.int64


def targets(sizes: Sizes, model: Any, head: Head, parameters: set[str]) -> list[Maker]:
    """Return what may make the labels of *head*, the likeliest first; nothing if it takes none."""
    if head in (Head.BOXES, Head.MASKS) and parameters & {"labels", "mask_labels"}:
        note_boxes(sizes.notebook)
    if "labels" not in parameters and head not in _WITHOUT_LABELS:
        return [partial(_actions, sizes)] if "actions" in parameters else [lambda _: {}]
    makers = [_MAKERS.get(head, _labels)]
    if head is Head.LABEL and {"input_ids", "pixel_values"} <= parameters:
        makers.append(_tokens)
    if "labels" in parameters and sizes.codes() > 1:
        makers += [_codes, _channels]
    return [partial(maker, sizes, model, parameters) for maker in makers]


def _labels(_s: Sizes, _m: Any, _p: set[str], shapes: Shapes) -> Batch:
    return {"labels": stand_in(shapes.batch_size, dtype=WHOLE)}


def _number(_s: Sizes, _m: Any, _p: set[str], shapes: Shapes) -> Batch:
    return {"labels": stand_in(shapes.batch_size)}


def _tokens(sizes: Sizes, model: Any, parameters: set[str], shapes: Shapes) -> Batch:
    if "decoder_input_ids" in parameters:
        return _sequences(sizes, model, parameters, shapes)
    labels_BS = stand_in(shapes.batch_size, sizes.length(shapes), dtype=WHOLE)
    labels = {"labels": labels_BS}
    for name in ("next_sentence_label", "sentence_order_label"):
        if name in parameters:
            labels[name] = stand_in(shapes.batch_size, dtype=WHOLE)
    return labels


def _pre_training(sizes: Sizes, model: Any, parameters: set[str], shapes: Shapes) -> Batch:
    made = pre_training(sizes, model, parameters, shapes)
    if made is None:
        return _tokens(sizes, model, parameters, shapes) if "labels" in parameters else {}
    return made


def _codes(sizes: Sizes, _m: Any, _p: set[str], shapes: Shapes) -> Batch:
    """Return every code of each step of sound (MusicGen)."""
    axes = (shapes.batch_size, sizes.length(shapes), sizes.codes())
    return {"labels": stand_in(*axes, dtype=WHOLE)}


def _channels(sizes: Sizes, _m: Any, _p: set[str], shapes: Shapes) -> Batch:
    """Return the codes of a channel as a sample of its own (Dia)."""
    axes = (shapes.batch_size * sizes.codes(), sizes.target(sizes.length(shapes)))
    return {"labels": stand_in(*axes, dtype=WHOLE)}


def _actions(sizes: Sizes, shapes: Shapes) -> Batch:
    """Return what a robot senses and what it is to do (pi0)."""
    config, batch = sizes.config, shapes.batch_size
    return {
        "state": stand_in(batch, config.max_state_dim, dtype=sizes.dtype),
        "actions": stand_in(batch, config.chunk_size, config.max_action_dim, dtype=sizes.dtype),
    }


def _sequences(sizes: Sizes, model: Any, parameters: set[str], shapes: Shapes) -> Batch:
    """Return what the decoder of an encoder-decoder model is fed, shifted."""
    source = sizes.length(shapes) if "input_ids" in parameters else sizes.target()
    one = getattr(model.config, "use_decoder_only_language_model", False)
    is_split = model.config.is_encoder_decoder or ("decoder_input_ids" in parameters and not one)
    length = sizes.target(source) if is_split else source
    return {"labels": stand_in(shapes.batch_size, length, dtype=WHOLE)}


def _transcript(sizes: Sizes, _m: Any, _p: set[str], shapes: Shapes) -> Batch:
    return {"labels": stand_in(shapes.batch_size, sizes.target(), dtype=WHOLE)}


def _span(_s: Sizes, model: Any, parameters: set[str], shapes: Shapes) -> Batch:
    names = ("start_positions", "end_positions")
    if "start_positions" not in parameters:
        if "labels" not in parameters:
            return {}
        of_table = "float_answer" in parameters
        return (_tokens if of_table else _labels)(_s, model, parameters, shapes)
    return {name: stand_in(shapes.batch_size, dtype=WHOLE) for name in names}


def _answers(sizes: Sizes, model: Any, parameters: set[str], shapes: Shapes) -> Batch:
    """Return a weight for every answer (ViLT), or the answer's tokens (BLIP)."""
    if "decoder_input_ids" in parameters:
        return _sequences(sizes, model, parameters, shapes)
    return {"labels": stand_in(shapes.batch_size, model.config.num_labels)}


def _frames(sizes: Sizes, model: Any, parameters: set[str], shapes: Shapes) -> Batch:
    """Return one label a frame, one-hot."""
    lengths = getattr(model, "_get_feat_extract_output_lengths", None)
    frames = int(lengths(sizes.samples())) if "input_values" in parameters and lengths else 0
    frames = frames or sizes.spectrogram()[1]
    return {"labels": stand_in(shapes.batch_size, frames, model.config.num_labels)}


def _pixels(sizes: Sizes, _m: Any, _p: set[str], shapes: Shapes) -> Batch:
    _, height, width = sizes.image()
    return {"labels": stand_in(shapes.batch_size, height, width, dtype=WHOLE)}


def _depth(sizes: Sizes, _m: Any, _p: set[str], shapes: Shapes) -> Batch:
    _, height, width = sizes.image()
    return {"labels": stand_in(shapes.batch_size, height, width)}


def _patches(sizes: Sizes, model: Any, _p: set[str], shapes: Shapes) -> Batch:
    """Return which patches are hidden."""
    _, height, width = sizes.image()
    edge = sizes.patch()
    if hasattr(model.config, "encoder_stride") and hasattr(model.config, "depths"):
        edge = model.config.patch_size
    count = (height // edge) * (width // edge)
    return {"bool_masked_pos": stand_in(shapes.batch_size, count, dtype=torch.bool)}


def _boxes(sizes: Sizes, model: Any, _p: set[str], shapes: Shapes) -> Batch:
    """Return the objects of each image, with masks where the model segments them."""
    _, height, width = sizes.image()
    masks = "Segmentation" in type(model).__name__

    def target() -> Batch:
        made = {"class_labels": stand_in(BOXES, dtype=WHOLE), "boxes": stand_in(BOXES, 4)}
        if masks:
            made["masks"] = stand_in(BOXES, height, width)
        return made

    return {"labels": [target() for _ in range(shapes.batch_size)]}


def _masks(sizes: Sizes, model: Any, parameters: set[str], shapes: Shapes) -> Batch:
    if "mask_labels" not in parameters:
        return _boxes(sizes, model, parameters, shapes)
    _, height, width = sizes.image()
    images = range(shapes.batch_size)
    return {
        "mask_labels": [stand_in(BOXES, height, width) for _ in images],
        "class_labels": [stand_in(BOXES, dtype=WHOLE) for _ in images],
    }


_WITHOUT_LABELS = (Head.SPAN, Head.MASKS, Head.PATCHES, Head.PRE_TRAINING)
"""Heads whose targets have names of their own."""

_MAKERS: dict[Head, Callable[[Sizes, Any, set[str], Shapes], Batch]] = {
    Head.CAUSAL: _tokens,
    Head.MASKED: _tokens,
    Head.PRE_TRAINING: _pre_training,
    Head.TOKENS: _tokens,
    Head.SEQUENCES: _sequences,
    Head.TRANSCRIPT: _transcript,
    Head.SPAN: _span,
    Head.ANSWERS: _answers,
    Head.FRAMES: _frames,
    Head.NUMBER: _number,
    Head.PIXELS: _pixels,
    Head.DEPTH: _depth,
    Head.PATCHES: _patches,
    Head.BOXES: _boxes,
    Head.MASKS: _masks,
}
