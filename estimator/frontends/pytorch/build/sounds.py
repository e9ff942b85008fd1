"""In which forms a transformers model may take sound: by the names it accepts.

parameters of forward, Sizes -> makers of recordings, the likeliest first
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import nn
from transformers import PreTrainedModel

from estimator.frontends.pytorch.build.job import Batch, Shapes, stand_in
from estimator.frontends.pytorch.build.packed import Maker, Names
from estimator.frontends.pytorch.build.sizes import BINS, Sizes

Form = Callable[[Shapes], tuple[tuple[int, ...], int]]
"""Returns the axes of a recording after the batch, and how many frames it has."""

SOUND_NAMES = {"input_features", "input_values"}
MASK_NAMES = {"input_features_mask", "feature_attention_mask", "padding_mask"}

FRAMES_FIRST = ("feature_projection_input_dim", "input_feat_per_channel")
"""Keys of models that take frames before features, and name the features so."""


def sounds(sizes: Sizes, model: nn.Module, names: Names) -> Iterator[Maker]:
    """Yield what makes sound: a wave, or a spectrogram with either axis first.

    Without a mask at first, then with one a frame, then with one whose values are known.
    """
    masks = names & MASK_NAMES
    if "input_ids" not in names:
        masks |= names & {"attention_mask"}
    name = "input_features" if "input_features" in names else "input_values"
    kinds = [*_kinds(sizes, model, names)]
    for mask in (None, stand_in_mask, known_mask) if masks else (None,):
        for kind in kinds:
            yield partial(_sound, sizes, name=name, kind=kind, masks=masks, mask=mask)


def _sound(
    sizes: Sizes,
    shapes: Shapes,
    *,
    name: str,
    kind: Form,
    masks: Names,
    mask: Callable[[int, int], torch.Tensor] | None,
) -> Batch:
    axes, frames = kind(shapes)
    batch: Batch = {name: stand_in(shapes.batch_size, *axes, dtype=sizes.dtype)}
    if mask is not None:
        batch |= {key: mask(shapes.batch_size, frames) for key in masks}
    return batch


def stand_in_mask(batch: int, length: int) -> torch.Tensor:
    """Return a mask that nothing is known of."""
    return stand_in(batch, length, dtype=torch.bool)


def known_mask(batch: int, length: int) -> torch.Tensor:
    """Return a mask that hides nothing, with its values where they are few enough to be kept."""
    return torch.tensor([[True] * length] * batch)


def _kinds(sizes: Sizes, model: nn.Module, names: Names) -> Iterator[Form]:
    def wave(_: Shapes) -> tuple[tuple[int, ...], int]:
        return (sizes.samples(),), sizes.samples()

    def channel(_: Shapes) -> tuple[tuple[int, ...], int]:
        return (1, sizes.samples()), sizes.samples()

    def bins_first(shapes: Shapes) -> tuple[tuple[int, ...], int]:
        bins, frames = sizes.spectrogram(shapes)
        return (bins, frames), frames

    def frames_first(shapes: Shapes) -> tuple[tuple[int, ...], int]:
        bins, frames = sizes.spectrogram(shapes)
        return (frames, bins), frames

    def stacked(shapes: Shapes) -> tuple[tuple[int, ...], int]:
        bins, frames = sizes.spectrogram(shapes)
        times = _stacked_frames(model, bins)
        return (frames // times, bins * times), frames // times

    def embedded(shapes: Shapes) -> tuple[tuple[int, ...], int]:
        _, frames = sizes.spectrogram(shapes)
        return (frames, sizes.find("hidden_size", "d_model", default=1)), frames

    own = hasattr(sizes.config, "max_length") and hasattr(sizes.config, "num_mel_bins")
    if "input_values" in names and not own:
        yield from (wave, channel)
    if own or any(hasattr(sizes.config, key) for key in FRAMES_FIRST):
        yield from (frames_first, bins_first)
    else:
        yield from (bins_first, frames_first)
    if "input_features" in names:
        yield from (stacked, embedded)


def _stacked_frames(model: nn.Module, bins: int) -> int:
    """Return how many frames of *bins* features the first layer of what hears takes at once."""
    for part in model.modules():
        config = getattr(part, "config", None) if isinstance(part, PreTrainedModel) else None
        if config is None or not any(hasattr(config, key) for key in BINS):
            continue
        first = next((layer for layer in part.modules() if isinstance(layer, nn.Linear)), None)
        if first is not None and first.in_features % bins == 0:
            return first.in_features // bins
    return 1
