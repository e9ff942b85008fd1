"""In which forms a transformers model may take its main input: by the names it accepts.

    parameters of forward, Sizes -> makers of a batch, the likeliest first

Processors are not run, so the form is that of one image (or recording, clip) a sample, without
crops or tiles unless the model knows no other. What a model reads the values of, such as grids of
patches, is real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from estimator.frontends.pytorch.build.heads import Head
from estimator.frontends.pytorch.build.job import Batch, Shapes, stand_in
from estimator.frontends.pytorch.build.pictures import Maker, Names, clips, images
from estimator.frontends.pytorch.build.sizes import Sizes

Axes = Callable[[], tuple[int, ...]]

IMAGE_NAMES = {"pixel_values", "flattened_patches", "image_patches"}
SOUND_NAMES = {"input_features", "input_values"}
CLIP_NAMES = {"pixel_values_videos", "pixel_values"}

CHOICES = 4
"""Answers of a multiple-choice sample, as in SWAG."""
REGIONS = 36
"""Regions an object detector finds for models of the time before patches."""
WHOLE = torch.int64


def forms(sizes: Sizes, model: Any, head: Head, names: Names, *, visual: bool) -> list[Maker]:
    """Return what may make the model's input. *visual*: text alone would miss the point."""
    pictures = [*images(sizes, names)] if names & IMAGE_NAMES else []
    moving = [*clips(sizes, names)] if names & CLIP_NAMES else []
    sounds = [*_sounds(sizes, names)] if names & SOUND_NAMES else []
    if "input_ids" not in names:
        first = moving[:1] if hasattr(model.config, "num_frames") else []
        return [*first, *pictures, *moving, *sounds, *_others(model, names)]
    text = _text(sizes, head, names)
    together = [_joined(text, other) for other in [*(pictures or moving), *sounds]]
    return together if visual and together else [text, *together]


def _joined(*makers: Maker) -> Maker:
    def make(shapes: Shapes) -> Batch:
        batch: Batch = {}
        for maker in makers:
            batch.update(maker(shapes))
        return batch

    return make


def _text(sizes: Sizes, head: Head, names: Names) -> Maker:
    """Return what makes tokens, with what else describes them."""
    padded = sizes.spec.input.padding_mask

    def make(shapes: Shapes) -> Batch:
        batch_size, length = shapes.batch_size, sizes.length(shapes)
        size = (batch_size, CHOICES, length) if head is Head.CHOICE else (batch_size, length)
        batch: Batch = {"input_ids": stand_in(*size, dtype=WHOLE)}
        if padded:
            batch["attention_mask"] = stand_in(*size, dtype=WHOLE)
        if "bbox" in names:
            batch["bbox"] = stand_in(*size, 4, dtype=WHOLE)
        if "global_attention_mask" in names and head is Head.SPAN:
            batch["global_attention_mask"] = stand_in(*size, dtype=WHOLE)
        if "visual_feats" in names:
            features = sizes.find("visual_feat_dim", default=2048)
            batch["visual_feats"] = stand_in(batch_size, REGIONS, features, dtype=sizes.dtype)
            batch["visual_pos"] = stand_in(batch_size, REGIONS, 4, dtype=sizes.dtype)
        if "qformer_input_ids" in names:
            batch["qformer_input_ids"] = stand_in(*size, dtype=WHOLE)
        if "image_embeds_position_mask" in names:
            batch["image_embeds_position_mask"] = stand_in(*size, dtype=torch.bool)
        return batch

    return make


def _sounds(sizes: Sizes, names: Names) -> Iterator[Maker]:
    """Yield what makes sound: a wave, or a spectrogram with either axis first.

    Without a mask at first, then with one a frame.
    """
    masks = names & {"input_features_mask", "feature_attention_mask"}
    if "input_ids" not in names:
        masks |= names & {"attention_mask"}

    def sound(shapes: Shapes, *, name: str, axes: Axes, masked: bool) -> Batch:
        made = axes()
        batch: Batch = {name: stand_in(shapes.batch_size, *made, dtype=sizes.dtype)}
        for mask in masks if masked else ():
            batch[mask] = stand_in(shapes.batch_size, max(made), dtype=torch.bool)
        return batch

    def wave() -> tuple[int, ...]:
        return (sizes.samples(),)

    def channel() -> tuple[int, ...]:
        return (1, sizes.samples())

    def bins_first() -> tuple[int, ...]:
        return sizes.spectrogram()

    def frames_first() -> tuple[int, ...]:
        return sizes.spectrogram()[::-1]

    own = hasattr(sizes.config, "max_length") and hasattr(sizes.config, "num_mel_bins")
    name = "input_features" if "input_features" in names else "input_values"
    axes: list[Axes] = [bins_first, frames_first]
    if own or any(hasattr(sizes.config, key) for key in FRAMES_FIRST):
        axes.reverse()
    if "input_values" in names and not own:
        axes = [wave, channel, *axes]
    for masked in (False, True) if masks else (False,):
        for kind in axes:
            yield partial(sound, name=name, axes=kind, masked=masked)


FRAMES_FIRST = ("feature_projection_input_dim", "input_feat_per_channel")
"""Keys of models that take frames before features, and name the features so."""


def _others(model: Any, names: Names) -> Iterator[Maker]:
    if "past_values" in names and hasattr(model.config, "prediction_length"):
        yield _series(model.config, names)


def _series(config: Any, names: Names) -> Maker:
    """Return what makes the past and the future of a time series."""

    def make(shapes: Shapes) -> Batch:
        batch = shapes.batch_size
        context = config.context_length or config.prediction_length
        past = context + max(getattr(config, "lags_sequence", None) or [0])
        width = getattr(config, "input_size", None) or getattr(config, "num_input_channels", 1)
        axes = () if width == 1 else (width,)
        made: Batch = {"past_values": stand_in(batch, past, *axes)}
        future = config.prediction_length
        features = getattr(config, "num_time_features", 0)
        if "past_time_features" in names:
            made["past_time_features"] = stand_in(batch, past, features)
            made["past_observed_mask"] = stand_in(batch, past, *axes)
            made["future_time_features"] = stand_in(batch, future, features)
        made["future_values"] = stand_in(batch, future, *axes)
        return made

    return make
