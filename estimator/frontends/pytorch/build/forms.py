"""In which forms a transformers model may take its main input: by the names it accepts.

    parameters of forward, Sizes -> makers of a batch, the likeliest first

Processors are not run, so the form is that of one image (or recording, clip) a sample, without
crops or tiles unless the model knows no other. What a model reads the values of, such as grids of
patches, is real.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from estimator.frontends.pytorch.build.heads import Head
from estimator.frontends.pytorch.build.job import Batch, Shapes, stand_in
from estimator.frontends.pytorch.build.packed import Maker, Names
from estimator.frontends.pytorch.build.pictures import clips, images
from estimator.frontends.pytorch.build.sizes import REGIONS, Sizes
from estimator.frontends.pytorch.build.sounds import SOUND_NAMES, sounds

IMAGE_NAMES = {"pixel_values", "flattened_patches", "image_patches"}
CLIP_NAMES = {"pixel_values_videos", "pixel_values"}

CHOICES = 4
"""Answers of a multiple-choice sample, as in SWAG."""
WHOLE = torch.int64


def forms(sizes: Sizes, model: Any, head: Head, names: Names, *, visual: bool) -> list[Maker]:
    """Return what may make the model's input. *visual*: text alone would miss the point."""
    pictures = [*images(sizes, names)] if names & IMAGE_NAMES else []
    moving = [*clips(sizes, names)] if names & CLIP_NAMES else []
    heard = [*sounds(sizes, model, names)] if names & SOUND_NAMES else []
    if "input_ids" not in names:
        first = moving[:1] if hasattr(model.config, "num_frames") else []
        return [*first, *pictures, *moving, *heard, *_others(model, names)]
    texts = [*_texts(sizes, head, names)]
    together = [_joined(texts[0], other) for other in [*(pictures or moving), *heard]]
    return [*together, *heard] if visual and together else [*texts, *together]


def _joined(*makers: Maker) -> Maker:
    def make(shapes: Shapes) -> Batch:
        batch: Batch = {}
        for maker in makers:
            batch.update(maker(shapes))
        return batch

    return make


def _texts(sizes: Sizes, head: Head, names: Names) -> Iterator[Maker]:
    """Yield what makes tokens; where sound is made of several codes a step, with those too."""
    yield _text(sizes, head, names)
    codes = sizes.codes()
    if codes > 1:
        yield _joined(_text(sizes, head, names), partial(_codes, sizes, last=1 + codes))
        yield _joined(_text(sizes, head, names), partial(_codes, sizes, times=codes))


def _codes(sizes: Sizes, shapes: Shapes, *, times: int = 1, last: int = 0) -> Batch:
    """Return tokens for *times* as many samples (MusicGen), or *last* at a step (Moshi)."""
    axes = (last,) if last else ()
    size = (shapes.batch_size * times, sizes.length(shapes), *axes)
    return {"input_ids": stand_in(*size, dtype=WHOLE)}


def _text(sizes: Sizes, head: Head, names: Names) -> Maker:
    """Return what makes tokens, with what else describes them."""
    padded = sizes.spec.input.padding_mask

    def make(shapes: Shapes) -> Batch:
        batch_size, length = shapes.batch_size, sizes.length(shapes)
        samples = (batch_size, CHOICES) if head is Head.CHOICE else (batch_size,)
        size = (*samples, length)
        batch: Batch = {"input_ids": stand_in(*size, dtype=WHOLE)}
        if padded:
            batch["attention_mask"] = stand_in(*size, dtype=WHOLE)
        if "bbox" in names:
            batch["bbox"] = stand_in(*size, 4, dtype=WHOLE)
        if "global_attention_mask" in names and head in (Head.SPAN, Head.CHOICE):
            batch["global_attention_mask"] = stand_in(*size, dtype=WHOLE)
        if "visual_feats" in names:
            features = sizes.find("visual_feat_dim", default=2048)
            batch["visual_feats"] = stand_in(batch_size, REGIONS, features, dtype=sizes.dtype)
            batch["visual_pos"] = stand_in(batch_size, REGIONS, 4, dtype=sizes.dtype)
        if "visual_embeds" in names:
            regions = (*samples, REGIONS)
            features = sizes.find("visual_embedding_dim", default=2048)
            batch["visual_embeds"] = stand_in(*regions, features, dtype=sizes.dtype)
            for name in ("visual_attention_mask", "visual_token_type_ids"):
                batch[name] = stand_in(*regions, dtype=WHOLE)
        if "qformer_input_ids" in names:
            batch["qformer_input_ids"] = stand_in(*size, dtype=WHOLE)
        if "image_embeds_position_mask" in names:
            batch["image_embeds_position_mask"] = stand_in(*size, dtype=torch.bool)
        return batch

    return make


def _others(model: Any, names: Names) -> Iterator[Maker]:
    if "past_values" in names and hasattr(model.config, "prediction_length"):
        yield _series(model.config, names)
    elif "past_values" in names and hasattr(model.config, "horizon_length"):
        yield partial(_forecast, model.config)


def _forecast(config: Any, shapes: Shapes) -> Batch:
    """Return a past of one variable and the horizon that follows (TimesFM)."""
    return {
        "past_values": stand_in(shapes.batch_size, config.context_length),
        "future_values": stand_in(shapes.batch_size, config.horizon_length),
    }


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
