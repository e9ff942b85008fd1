"""What the denoisers of diffusers are fed.

    class name -> Feed; configuration, Sizes -> keyword arguments

Source: diffusers 0.42.1 `models/unets/`, `models/transformers/` (signatures), and the training
examples for what goes in: packed latents of FLUX are (h/2)*(w/2) tokens of 4 latents each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from estimator.frontends.pytorch.build.job import Batch, stand_in

NUM_IDS = 6
"""Sizes and crops SDXL is told."""
PACKED = 2
"""Latents a side of a token of FLUX."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large the latents and the words of one batch are."""

    batch: int
    height: int
    width: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """How one class of denoisers is fed."""

    make: Callable[[Any, Sizes, torch.dtype], Batch]
    latents: str = "hidden_states"
    """Which argument holds the noisy latents."""
    factor: int = 8
    """Pixels a latent is wide, if no VAE says so."""

    def noisy(self, batch: Batch) -> Batch:
        """Return the latents with noise: both live beside the sum, as in the examples."""
        given = batch[self.latents]
        if not given.is_floating_point():
            return {}
        noise = torch.randn_like(given)
        return {self.latents: given * 0.5 + noise * 0.5}


def _unet(config: Any, sizes: Sizes, dtype: torch.dtype) -> Batch:
    shape = (sizes.batch, config.in_channels, sizes.height, sizes.width)
    width = config.cross_attention_dim
    width = width[0] if isinstance(width, list | tuple) else width
    batch: Batch = {
        "sample": stand_in(*shape, dtype=dtype),
        "timestep": stand_in(sizes.batch, dtype=torch.int64),
        "encoder_hidden_states": stand_in(sizes.batch, sizes.tokens, width, dtype=dtype),
    }
    if config.addition_embed_type == "text_time":
        pooled = config.projection_class_embeddings_input_dim
        pooled -= NUM_IDS * config.addition_time_embed_dim
        batch["added_cond_kwargs"] = {
            "text_embeds": stand_in(sizes.batch, pooled, dtype=dtype),
            "time_ids": stand_in(sizes.batch, NUM_IDS, dtype=dtype),
        }
    return batch


def _plain_unet(config: Any, sizes: Sizes, dtype: torch.dtype) -> Batch:
    shape = (sizes.batch, config.in_channels, sizes.height, sizes.width)
    return {
        "sample": stand_in(*shape, dtype=dtype),
        "timestep": stand_in(sizes.batch, dtype=torch.int64),
    }


def _sd3(config: Any, sizes: Sizes, dtype: torch.dtype) -> Batch:
    shape = (sizes.batch, config.in_channels, sizes.height, sizes.width)
    return {
        "hidden_states": stand_in(*shape, dtype=dtype),
        "timestep": stand_in(sizes.batch),
        "encoder_hidden_states": stand_in(
            sizes.batch, sizes.tokens, config.joint_attention_dim, dtype=dtype
        ),
        "pooled_projections": stand_in(sizes.batch, config.pooled_projection_dim, dtype=dtype),
    }


def _flux(config: Any, sizes: Sizes, dtype: torch.dtype) -> Batch:
    batch = _packed(config, sizes, dtype, axes=len(config.axes_dims_rope), batched=False)
    batch["pooled_projections"] = stand_in(sizes.batch, config.pooled_projection_dim, dtype=dtype)
    return batch


def _flux2(config: Any, sizes: Sizes, dtype: torch.dtype) -> Batch:
    return _packed(config, sizes, dtype, axes=len(config.axes_dims_rope), batched=True)


def _packed(config: Any, sizes: Sizes, dtype: torch.dtype, *, axes: int, batched: bool) -> Batch:
    tokens = (sizes.height // PACKED) * (sizes.width // PACKED)
    first = (sizes.batch,) if batched else ()
    batch: Batch = {
        "hidden_states": stand_in(sizes.batch, tokens, config.in_channels, dtype=dtype),
        "timestep": stand_in(sizes.batch, dtype=dtype),
        "encoder_hidden_states": stand_in(
            sizes.batch, sizes.tokens, config.joint_attention_dim, dtype=dtype
        ),
        "img_ids": stand_in(*first, tokens, axes, dtype=dtype),
        "txt_ids": stand_in(*first, sizes.tokens, axes, dtype=dtype),
    }
    if config.guidance_embeds:
        batch["guidance"] = stand_in(sizes.batch, dtype=dtype)
    return batch


def _pixart(config: Any, sizes: Sizes, dtype: torch.dtype) -> Batch:
    shape = (sizes.batch, config.in_channels, sizes.height, sizes.width)
    return {
        "hidden_states": stand_in(*shape, dtype=dtype),
        "timestep": stand_in(sizes.batch, dtype=torch.int64),
        "encoder_hidden_states": stand_in(
            sizes.batch, sizes.tokens, config.caption_channels, dtype=dtype
        ),
        "added_cond_kwargs": {
            "resolution": stand_in(sizes.batch, 2, dtype=dtype),
            "aspect_ratio": stand_in(sizes.batch, 1, dtype=dtype),
        },
    }


def _dit(config: Any, sizes: Sizes, dtype: torch.dtype) -> Batch:
    shape = (sizes.batch, config.in_channels, sizes.height, sizes.width)
    return {
        "hidden_states": stand_in(*shape, dtype=dtype),
        "timestep": stand_in(sizes.batch, dtype=torch.int64),
        "class_labels": stand_in(sizes.batch, dtype=torch.int64),
    }


def _sana(config: Any, sizes: Sizes, dtype: torch.dtype) -> Batch:
    shape = (sizes.batch, config.in_channels, sizes.height, sizes.width)
    return {
        "hidden_states": stand_in(*shape, dtype=dtype),
        "timestep": stand_in(sizes.batch, dtype=torch.int64),
        "encoder_hidden_states": stand_in(
            sizes.batch, sizes.tokens, config.caption_channels, dtype=dtype
        ),
    }


def _uvit(config: Any, sizes: Sizes, dtype: torch.dtype) -> Batch:
    return {
        "input_ids": stand_in(sizes.batch, sizes.height, sizes.width, dtype=torch.int64),
        "encoder_hidden_states": stand_in(
            sizes.batch, sizes.tokens, config.encoder_hidden_size, dtype=dtype
        ),
        "pooled_text_emb": stand_in(sizes.batch, config.cond_embed_dim, dtype=dtype),
        "micro_conds": stand_in(
            sizes.batch, config.micro_cond_embed_dim // config.micro_cond_encode_dim
        ),
    }


FEEDERS = {
    "UNet2DConditionModel": Feed(make=_unet, latents="sample"),
    "UNet2DModel": Feed(make=_plain_unet, latents="sample", factor=1),
    "SD3Transformer2DModel": Feed(make=_sd3),
    "FluxTransformer2DModel": Feed(make=_flux),
    "Flux2Transformer2DModel": Feed(make=_flux2),
    "PixArtTransformer2DModel": Feed(make=_pixart),
    "DiTTransformer2DModel": Feed(make=_dit),
    "SanaTransformer2DModel": Feed(make=_sana, factor=32),
    "UVit2DModel": Feed(make=_uvit, latents="input_ids", factor=16),
}
"""Class of a denoiser -> how it is fed."""
