"""Denoisers of diffusers, alone and with the frozen models of their pipelines."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.trace import Role, Trace
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import by_role, fault, job

pytestmark = pytest.mark.torch


def loaded(trace: Trace) -> int:
    """Return the bytes of everything that was put on the card before the first step."""
    return by_role(trace)[Role.PARAMETER]


UNET = {
    "_class_name": "UNet2DConditionModel",
    "block_out_channels": [32, 64],
    "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
    "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"],
    "cross_attention_dim": 32,
    "attention_head_dim": 8,
    "sample_size": 16,
    "norm_num_groups": 8,
    "layers_per_block": 1,
}
PIPELINE = {
    "_class_name": "StableDiffusionPipeline",
    "unet": UNET,
    "vae": {
        "_class_name": "AutoencoderKL",
        "block_out_channels": [16, 16],
        "down_block_types": ["DownEncoderBlock2D", "DownEncoderBlock2D"],
        "up_block_types": ["UpDecoderBlock2D", "UpDecoderBlock2D"],
        "norm_num_groups": 8,
        "latent_channels": 4,
    },
    "text_encoder": {
        "architectures": ["CLIPTextModel"],
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "vocab_size": 1000,
        "max_position_embeddings": 77,
    },
}


def pictures(config: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """Return a job that trains a small diffusion model."""
    model = {"source": "diffusers", "name": "small", "config": config}
    return job(model, input={"imageSize": [3, 64, 64]}, **rest)


def test_a_pipeline_has_its_frozen_models_on_the_card(in_child: InChild) -> None:
    """Text encoder and VAE are resident and run, and nothing of them is trained."""
    alone = in_child(children.trace, pictures(UNET))
    whole = in_child(children.trace, pictures(PIPELINE))

    assert fault(whole) is None
    assert loaded(whole) > loaded(alone)
    assert by_role(whole)[Role.GRADIENT] == by_role(alone)[Role.GRADIENT]


def test_an_adapted_denoiser_is_frozen_in_the_lower_dtype(in_child: InChild) -> None:
    """Under autocast diffusers' LoRA examples put all but the adapter into 16 bits."""
    adapter = {"type": "lora", "rank": 4, "targetModules": ["to_q", "to_v"]}
    training = {"precision": "amp-bf16"}
    full = in_child(children.trace, pictures(UNET, training=training))
    adapted = in_child(children.trace, pictures(UNET, training=training, adapter=adapter))

    assert loaded(adapted) < 0.6 * loaded(full)


def test_an_unknown_denoiser_is_refused_with_those_known(in_child: InChild) -> None:
    """Never a guess by name."""
    refusal = in_child(children.refusal, pictures({"_class_name": "NoSuchModel"}))

    assert refusal.kind == "unsupported"
    assert refusal.code == "model"
    assert "UNet2DConditionModel" in refusal.message
