"""What some transformers models need beside their main input: masks, types, a decoder's tokens.

    batch, parameters of forward -> batch with what describes it

Most models do without, and a batch without is tried first.
"""

from __future__ import annotations

import torch

from estimator.frontends.pytorch.build.heads import Head
from estimator.frontends.pytorch.build.job import Batch, Shapes, stand_in
from estimator.frontends.pytorch.build.packed import Names
from estimator.frontends.pytorch.build.sizes import Sizes
from estimator.frontends.pytorch.build.sounds import known_mask, stand_in_mask

TEXT_NAMES = {"attention_mask", "token_type_ids", "mm_token_type_ids"}
TILED = 5
"""Axes of images with several tiles a sample."""
WHOLE = torch.int64


def described(
    sizes: Sizes, batch: Batch, head: Head, names: Names, shapes: Shapes, *, known: bool
) -> Batch:
    """Return *batch* with masks that hide nothing, and what else its tensors may come with.

    *known*: the masks have values, for models that count what they select.
    """
    mask = known_mask if known else stand_in_mask
    made: Batch = {}
    if "input_ids" in batch:
        for name in names & TEXT_NAMES:
            made[name] = stand_in(*batch["input_ids"].shape, dtype=WHOLE)
    picture = batch.get("pixel_values")
    if picture is not None and "pixel_attention_mask" in names and picture.dim() == TILED:
        made["pixel_attention_mask"] = mask(*picture.shape[:2])
    if "decoder_input_ids" in names:
        made["decoder_input_ids"] = _decoder(sizes, batch, head, shapes)
    return {**batch, **{name: value for name, value in made.items() if name not in batch}}


def needed(sizes: Sizes, names: Names, shapes: Shapes) -> Batch:
    """Return texts and their masks under *names*, which forward cannot do without."""
    size = (shapes.batch_size, sizes.length(shapes))
    endings = ("input_ids", "attention_mask")
    return {
        name: stand_in(*(size if name.endswith(endings) else size[:1]), dtype=WHOLE)
        for name in names
    }


def _decoder(sizes: Sizes, batch: Batch, head: Head, shapes: Shapes) -> torch.Tensor:
    """Return the decoder's tokens: as many as labels, a blank before those of a transducer.

    Source: transformers 5.24.0 `ParakeetProcessor.__call__`; a step of sound has several codes.
    """
    labels = batch.get("labels")
    length = labels.shape[-1] if isinstance(labels, torch.Tensor) else sizes.target()
    codes = sizes.codes()
    axes = (codes,) if codes > 1 else ()
    length += head is Head.TRANSCRIPT
    return stand_in(shapes.batch_size, length, *axes, dtype=WHOLE)
