"""Forms of images and clips a transformers model may take: by the names it accepts.

    parameters of forward, Sizes -> makers of images, the likeliest first

What a model reads the values of, such as grids of patches, is real. Shape letters: B batch,
C channels, H height, W width, P patches.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from transformers.image_processing_utils import select_best_resolution

from estimator.frontends.pytorch.build.job import Batch, Shapes, stand_in
from estimator.frontends.pytorch.build.packed import (
    Maker,
    Names,
    channels_last,
    flattened_patches,
    fuyu,
    grid,
    one_row,
    packed,
    padded_grid,
    pooled,
)
from estimator.frontends.pytorch.build.sizes import VISION, Sizes

TASK_LENGTH = 77
"""Tokens of the task of OneFormer."""
TILES = 5
"""An image and its four quarters (LLaVA-NeXT at its smallest pinpoints)."""
WHOLE = torch.int64


def images(sizes: Sizes, names: Names) -> Iterator[Maker]:
    """Yield what makes images: the forms the names point to, then the plain one."""
    if "flattened_patches" in names:
        yield flattened_patches(sizes, names)
        return
    depth = sizes.find("temporal_patch_size", parts=VISION, default=1)
    if names & {"image_grid_thw", "image_grid_hw"}:
        for whole, deep in ((False, depth), (True, 1), (False, 2)):
            yield grid(sizes, names, whole=whole, depth=deep)
    if "image_patches" in names:
        yield fuyu(sizes)
    if "spatial_shapes" in names:
        yield packed(sizes)
    if "target_sizes" in names:
        yield one_row(sizes, names)
    if "image_token_pooling" in names:
        yield pooled(sizes)
    if "aspect_ratio_ids" in names:
        yield _tiles(sizes)
    if "pixel_attention_mask" in names:
        yield _plain(sizes, names, extra=(1,))
    if "pixel_values" in names:
        yield from _pixels(sizes, names)
    if "image_grid_thw" in names:
        yield padded_grid(sizes, depth=depth)
    if "pixel_values" in names:
        yield channels_last(sizes, names)


def _pixels(sizes: Sizes, names: Names) -> Iterator[Maker]:
    """Yield what makes images as they are, whole and in tiles, then cut to merged patches."""
    pinpoints = getattr(sizes.config, "image_grid_pinpoints", None)
    if pinpoints:
        yield _plain(sizes, names, extra=(_tiles_of(sizes, pinpoints),))
    yield _plain(sizes, names)
    yield _plain(sizes, names - {"image_sizes"})
    for extra in ((TILES,), (1,)):
        yield _plain(sizes, names, extra=extra)
    edge = sizes.merged_edge()
    if edge > 1:
        yield _plain(sizes, names, multiple=edge)
        yield _plain(sizes, names, extra=(1,), multiple=edge)


def _tiles_of(sizes: Sizes, pinpoints: list[list[int]]) -> int:
    """Return the tiles of an image, itself included, at the smallest of its resolutions.

    Source: transformers 5.24.0 `image_size_to_num_patches` of LLaVA-NeXT.
    """
    _, edge, _ = sizes.image()
    height, width = (int(side) for side in select_best_resolution((edge, edge), pinpoints))
    return 1 + -(-height // edge) * -(-width // edge)


def _plain(sizes: Sizes, names: Names, extra: tuple[int, ...] = (), *, multiple: int = 1) -> Maker:
    """Return what makes images, *extra* axes after the batch, edges cut to a *multiple*."""

    def make(shapes: Shapes) -> Batch:
        channels, height, width = sizes.image(multiple=multiple)
        image = (channels, height, width)
        batch: Batch = {
            "pixel_values": stand_in(shapes.batch_size, *extra, *image, dtype=sizes.dtype)
        }
        if "image_sizes" in names:
            batch["image_sizes"] = torch.tensor([[height, width]] * shapes.batch_size)
        if "task_inputs" in names:
            queries = getattr(sizes.config, "num_queries", 150) - 16
            batch["task_inputs"] = stand_in(shapes.batch_size, TASK_LENGTH)
            batch["text_inputs"] = stand_in(shapes.batch_size, queries, TASK_LENGTH, dtype=WHOLE)
        if "image_attention_mask" in names and extra:
            size = (shapes.batch_size, sizes.length(shapes), *extra)
            batch["image_attention_mask"] = stand_in(*size, dtype=WHOLE)
        if "high_res_pixel_values" in names:
            batch["high_res_pixel_values"] = stand_in(
                shapes.batch_size, channels, 1024, 1024, dtype=sizes.dtype
            )
        return batch

    return make


def _tiles(sizes: Sizes) -> Maker:
    """Return what makes an image in as many tiles as the model takes (Llama 3.2 Vision)."""

    def make(shapes: Shapes) -> Batch:
        tiles = sizes.find("max_num_tiles", parts=("vision_config",), default=4)
        batch, length = shapes.batch_size, sizes.length(shapes)
        return {
            "pixel_values": stand_in(batch, 1, tiles, *sizes.image(), dtype=sizes.dtype),
            "aspect_ratio_ids": stand_in(batch, 1, dtype=WHOLE),
            "aspect_ratio_mask": stand_in(batch, 1, tiles, dtype=WHOLE),
            "cross_attention_mask": stand_in(batch, length, 1, tiles, dtype=WHOLE),
        }

    return make


def clips(sizes: Sizes, names: Names) -> Iterator[Maker]:
    name = "pixel_values_videos" if "pixel_values_videos" in names else "pixel_values"
    for before in (True, False):

        def make(shapes: Shapes, *, before: bool = before) -> Batch:
            channels, height, width = sizes.image()
            frames = sizes.frames(16)
            axes = (frames, channels) if before else (channels, frames)
            return {name: stand_in(shapes.batch_size, *axes, height, width, dtype=sizes.dtype)}

        yield make
