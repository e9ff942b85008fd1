"""The frozen models of a pipeline: text encoders and the VAE, resident and run in every step.

pipeline configuration, dtype -> Beside
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import diffusers
import torch
import transformers
from torch import nn

from estimator.errors import UnsupportedJobError
from estimator.frontends.pytorch.build.job import Batch
from estimator.frontends.pytorch.load import on_stand_ins
from estimator.frontends.pytorch.patches import default_dtype
from estimator.notes import UnknownCode

WORDS = ("text_encoder", "text_encoder_2", "text_encoder_3")
CLASSES = ("CLIPTextModel", "CLIPTextModelWithProjection", "T5EncoderModel", "UMT5EncoderModel")
"""Text encoders whose configuration alone says what they are."""
SIDE = 2
"""Every down block of a VAE but the last halves both sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Frozen models, in the order they are loaded."""

    encoders: tuple[Any, ...] = ()
    vae: Any = None
    vae_dtype: torch.dtype | None = None

    @property
    def models(self) -> tuple[nn.Module, ...]:
        """Return all of them."""
        return (*self.encoders, *(() if self.vae is None else (self.vae,)))

    @property
    def factor(self) -> int | None:
        """Return how many pixels a latent is wide, None without a VAE."""
        if self.vae is None:
            return None
        return int(SIDE ** (len(self.vae.config.block_out_channels) - 1))

    def encode(self, batch: Batch) -> None:
        """Run them. What they return is as large as what the denoiser is fed, made anew."""
        if self.vae is not None:
            self.vae.encode(batch["pixels"].to(self.vae_dtype))
        for encoder in self.encoders:
            length = _longest(encoder, batch["ids"].shape[1])
            encoder(input_ids=batch["ids"][:, :length])


def beside(config: Mapping[str, Any], dtype: torch.dtype) -> Beside:
    """Return the frozen models of the pipeline *config* describes.

    A VAE that is said to overflow in 16 bits (`force_upcast`) runs in fp32.
    """
    encoders = tuple(_encoder(config[name], dtype) for name in WORDS if name in config)
    if "vae" not in config:
        return Beside(encoders=encoders)
    own = torch.float32 if config["vae"].get("force_upcast") else dtype
    kind = getattr(diffusers, str(config["vae"].get("_class_name", "AutoencoderKL")))
    with default_dtype(own), torch.device("meta"):
        vae = kind.from_config(dict(config["vae"])).to(own)
    return Beside(encoders=encoders, vae=_frozen(vae), vae_dtype=own)


def _encoder(config: Mapping[str, Any], dtype: torch.dtype) -> Any:
    name = (config.get("architectures") or ["?"])[0]
    if name not in CLASSES:
        raise UnsupportedJobError(
            f"model.config.text_encoder: '{name:.60}' is not modelled; known: {', '.join(CLASSES)}",
            code=UnknownCode.MODEL,
            path="model.config.text_encoder",
        )
    kind = getattr(transformers, name)
    rest = {
        key: value for key, value in config.items() if key not in ("architectures", "model_type")
    }
    return _frozen(kind._from_config(kind.config_class(**rest), dtype=dtype))


def _frozen(model: Any) -> Any:
    on_stand_ins(model)
    return model.eval().requires_grad_(False)


def _longest(encoder: Any, tokens: int) -> int:
    return min(tokens, getattr(encoder.config, "max_position_embeddings", tokens))
