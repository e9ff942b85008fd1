"""Images that are cut into patches before a transformers model sees them.

    parameters of forward, Sizes -> makers of patches

Grids of patches are real: models read their values.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from estimator.frontends.pytorch.build.job import Batch, Shapes, stand_in
from estimator.frontends.pytorch.build.sizes import GRID_IMAGE, Sizes

Maker = Callable[[Shapes], Batch]
Names = set[str]

FLATTENED = 2048
"""Patches of an image that keeps its proportions (Pix2Struct's default)."""
PACKED = 256
"""Patches of an image that keeps its proportions (SigLIP 2's default)."""
POOLED = 2
"""Patches along an edge that are pooled into one token (Molmo 2's `pooling_size`)."""
WHOLE = torch.int64


def grid(sizes: Sizes, names: Names, *, whole: bool, depth: int) -> Maker:
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
        return batch | _typed(sizes, names, shapes)

    return make


def _typed(sizes: Sizes, names: Names, shapes: Shapes) -> Batch:
    """Return which tokens are an image's, and where they are: models read neither."""
    size = (shapes.batch_size, sizes.length(shapes))
    types = names & {"mm_token_type_ids", "moe_mm_token_type_ids"}
    batch: Batch = {name: stand_in(*size, dtype=WHOLE) for name in types}
    if "mm_token_type_ids" in names and "position_ids" in names:
        rope = getattr(sizes.text, "rope_parameters", None) or {}
        axes = len(rope.get("mrope_section") or (1, 1, 1))
        batch["position_ids"] = stand_in(axes, *size, dtype=WHOLE)
    return batch


def flattened_patches(sizes: Sizes, names: Names) -> Maker:
    def make(shapes: Shapes) -> Batch:
        own = 3 * sizes.patch() ** 2
        features = 2 + sizes.find("patch_embed_hidden_size", parts=("vision_config",), default=own)
        size = (shapes.batch_size, FLATTENED)
        batch: Batch = {"flattened_patches": stand_in(*size, features, dtype=sizes.dtype)}
        for name in names & {"width", "height"}:
            batch[name] = stand_in(shapes.batch_size, dtype=WHOLE)
        return batch

    return make


def fuyu(sizes: Sizes) -> Maker:
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


def packed(sizes: Sizes) -> Maker:
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


def padded_grid(sizes: Sizes, *, depth: int) -> Maker:
    """Return what makes the flat patches of each image apart, with their grids (ColQwen2)."""

    def make(shapes: Shapes) -> Batch:
        made = grid(sizes, {"image_grid_thw"}, whole=False, depth=depth)(shapes)
        patches, features = made["pixel_values"].shape
        size = (shapes.batch_size, patches // shapes.batch_size, features)
        return {**made, "pixel_values": stand_in(*size, dtype=sizes.dtype)}

    return make


def channels_last(sizes: Sizes, names: Names) -> Maker:
    """Return what makes patches of one token each, channels last (Inkling)."""
    vision = ("vision_config",)

    def make(shapes: Shapes) -> Batch:
        edge = sizes.patch() * sizes.find("spatial_merge_size", parts=vision, default=1)
        depth = sizes.find("temporal_patch_size", parts=vision, default=1)
        channels, height, width = sizes.image(GRID_IMAGE, multiple=edge)
        rows, columns = height // edge, width // edge
        patches = shapes.batch_size * rows * columns
        size = (patches, depth, edge, edge, channels)
        batch: Batch = {"pixel_values": stand_in(*size, dtype=sizes.dtype)}
        if "image_grid_thw" in names:
            batch["image_grid_thw"] = torch.tensor([[1, rows, columns]] * shapes.batch_size)
        return batch

    return make


def one_row(sizes: Sizes, names: Names) -> Maker:
    """Return what makes the patches of all images side by side, with their grids (MiniCPM-V)."""

    def make(shapes: Shapes) -> Batch:
        edge = sizes.patch()
        channels, height, width = sizes.image(GRID_IMAGE, multiple=4 * edge)
        rows, columns = height // edge, width // edge
        across = shapes.batch_size * rows * columns * edge
        return {
            "pixel_values": stand_in(1, channels, edge, across, dtype=sizes.dtype),
            "target_sizes": torch.tensor([[rows, columns]] * shapes.batch_size),
            **_typed(sizes, names, shapes),
        }

    return make


def pooled(sizes: Sizes) -> Maker:
    """Return what makes the flat patches of one crop an image, and which are pooled (Molmo 2)."""

    def make(shapes: Shapes) -> Batch:
        edge, batch = sizes.patch(), shapes.batch_size
        channels, height, width = sizes.image(multiple=edge)
        rows, columns = height // edge, width // edge
        tokens = [-(-rows // POOLED), -(-columns // POOLED)]
        size = (batch, rows * columns, channels * edge * edge)
        pooling = (batch * tokens[0] * tokens[1], POOLED * POOLED)
        return {
            "pixel_values": stand_in(*size, dtype=sizes.dtype),
            "image_token_pooling": stand_in(*pooling, dtype=WHOLE),
            "image_grids": torch.tensor([[*tokens, 0, 0]] * batch),
            "image_num_crops": torch.tensor([1] * batch),
        }

    return make
