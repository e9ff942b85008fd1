"""Forms of images and clips a transformers model may take: by the names it accepts.

    parameters of forward, Sizes -> makers of images, the likeliest first

What a model reads the values of, such as grids of patches, is real. Shape letters: B batch,
C channels, H height, W width, P patches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from transformers.image_processing_utils import select_best_resolution

from estimator.frontends.pytorch.build.job import Batch, Shapes, stand_in
from estimator.frontends.pytorch.build.sizes import GRID_IMAGE, Sizes

Maker = Callable[[Shapes], Batch]
Names = set[str]

FLATTENED = 2048
"""Patches of an image that keeps its proportions (Pix2Struct's default)."""
PACKED = 256
"""Patches of an image that keeps its proportions (SigLIP 2's default)."""
TASK_LENGTH = 77
"""Tokens of the task of OneFormer."""
TILES = 5
"""An image and its four quarters (LLaVA-NeXT at its smallest pinpoints)."""
WHOLE = torch.int64


def images(sizes: Sizes, names: Names) -> Iterator[Maker]:
    """Yield what makes images: the forms the names point to, then the plain one."""
    if "flattened_patches" in names:
        yield _flattened_patches(sizes, names)
        return
    if names & {"image_grid_thw", "image_grid_hw"}:
        depth = sizes.find("temporal_patch_size", parts=("vision_config",), default=1)
        for whole, deep in ((False, depth), (True, 1), (False, 2)):
            yield _grid(sizes, names, whole=whole, depth=deep)
    if "image_patches" in names:
        yield _fuyu(sizes)
    if "spatial_shapes" in names:
        yield _packed(sizes)
    if "aspect_ratio_ids" in names:
        yield _tiles(sizes)
    if "pixel_attention_mask" in names:
        yield _plain(sizes, names, extra=(1,))
    if "pixel_values" in names:
        pinpoints = getattr(sizes.config, "image_grid_pinpoints", None)
        if pinpoints:
            yield _plain(sizes, names, extra=(_tiles_of(sizes, pinpoints),))
        yield _plain(sizes, names)
        yield _plain(sizes, names - {"image_sizes"})
        for extra in ((TILES,), (1,)):
            yield _plain(sizes, names, extra=extra)


def _tiles_of(sizes: Sizes, pinpoints: list[list[int]]) -> int:
    """Return the tiles of an image, itself included, at the smallest of its resolutions.

    Source: transformers 5.24.0 `image_size_to_num_patches` of LLaVA-NeXT.
    """
    _, edge, _ = sizes.image()
    height, width = (int(side) for side in select_best_resolution((edge, edge), pinpoints))
    return 1 + -(-height // edge) * -(-width // edge)


def _plain(sizes: Sizes, names: Names, extra: tuple[int, ...] = ()) -> Maker:
    """Return what makes images, *extra* axes after the batch."""

    def make(shapes: Shapes) -> Batch:
        channels, height, width = sizes.image()
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


def _grid(sizes: Sizes, names: Names, *, whole: bool, depth: int) -> Maker:
    """Return what makes flat patches and the grids they come from (Qwen2-VL and its kin)."""
    vision = ("vision_config",)
    merge = sizes.find("spatial_merge_size", "merge_size", parts=vision, default=2)

    def make(shapes: Shapes) -> Batch:
        edge = sizes.patch()
        channels, height, width = sizes.image(GRID_IMAGE, multiple=edge * merge)
        rows, columns = height // edge, width // edge
        patches = shapes.batch_size * rows * columns
        patch = (channels, edge, edge) if whole else (channels * depth * edge * edge,)
        batch: Batch = {"pixel_values": stand_in(patches, *patch, dtype=sizes.dtype)}
        if "image_grid_thw" in names:
            batch["image_grid_thw"] = torch.tensor([[1, rows, columns]] * shapes.batch_size)
        else:
            batch["image_grid_hw"] = torch.tensor([[rows, columns]] * shapes.batch_size)
        if "image_merge_sizes" in names:
            batch["image_merge_sizes"] = torch.tensor([merge] * shapes.batch_size)
        size = (shapes.batch_size, sizes.length(shapes))
        for name in names & {"mm_token_type_ids", "moe_mm_token_type_ids"}:
            batch[name] = stand_in(*size, dtype=WHOLE)
        if "mm_token_type_ids" in names and "position_ids" in names:
            batch["position_ids"] = stand_in(3, *size, dtype=WHOLE)
        return batch

    return make


def _flattened_patches(sizes: Sizes, names: Names) -> Maker:
    def make(shapes: Shapes) -> Batch:
        own = 3 * sizes.patch() ** 2
        features = 2 + sizes.find("patch_embed_hidden_size", parts=("vision_config",), default=own)
        size = (shapes.batch_size, FLATTENED)
        batch: Batch = {"flattened_patches": stand_in(*size, features, dtype=sizes.dtype)}
        for name in names & {"width", "height"}:
            batch[name] = stand_in(shapes.batch_size, dtype=WHOLE)
        return batch

    return make


def _fuyu(sizes: Sizes) -> Maker:
    def make(shapes: Shapes) -> Batch:
        channels, height, width = sizes.image(multiple=sizes.patch())
        edge = sizes.patch()
        count, features = (height // edge) * (width // edge), channels * edge * edge
        size = (shapes.batch_size, sizes.length(shapes))
        return {
            "image_patches": stand_in(shapes.batch_size, count, features, dtype=sizes.dtype),
            "pixel_values": stand_in(shapes.batch_size, count, features, dtype=sizes.dtype),
            "image_patches_indices": stand_in(*size, dtype=WHOLE),
        }

    return make


def _packed(sizes: Sizes) -> Maker:
    """Return what makes patches padded to a number, with their grids (SigLIP 2)."""

    def make(shapes: Shapes) -> Batch:
        count = sizes.find(
            "num_patches", "max_num_patches", parts=("vision_config",), default=PACKED
        )
        edge = int(count**0.5)
        features = 3 * sizes.patch() ** 2
        size = (shapes.batch_size, count)
        return {
            "pixel_values": stand_in(*size, features, dtype=sizes.dtype),
            "pixel_attention_mask": torch.ones(shapes.batch_size, count, dtype=torch.int32),
            "spatial_shapes": torch.tensor([[edge, edge]] * shapes.batch_size),
        }

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
