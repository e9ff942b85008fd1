"""Diffusion models of diffusers, and the frozen models that stand beside them.

    model.config (a pipeline, or its denoiser alone) or a known name -> Built

One training step as diffusers' own examples take it: pictures through the VAE, words through the
text encoders, both without gradients and in the lower dtype; the denoiser; the mean squared error
in fp32. A denoiser alone is fed latents and embeddings.
Source: huggingface/diffusers@v0.35.1 `examples/text_to_image/train_text_to_image_lora.py`,
`train_text_to_image_lora_sdxl.py`, `examples/dreambooth/train_dreambooth_lora_sd3.py`.
Not modelled: embeddings computed before training (`--pre_encode`), validation pictures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import diffusers
import torch
from torch import nn
from torch.nn import functional

from estimator.catalog.models import known_model
from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.diffusion.beside import Beside, beside
from estimator.frontends.pytorch.build.diffusion.denoisers import FEEDERS, Feed, Sizes
from estimator.frontends.pytorch.build.job import Batch, Built, Shapes, stand_in
from estimator.frontends.pytorch.build.limits import check_config
from estimator.frontends.pytorch.checkpointing import checkpointed, layers_of
from estimator.frontends.pytorch.dtypes import AUTOCAST, WEIGHTS
from estimator.frontends.pytorch.load import on_stand_ins
from estimator.frontends.pytorch.patches import default_dtype
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobSpec

DENOISERS = ("unet", "transformer")
"""Parts of a pipeline that are trained."""
BROKEN_SWITCH = ("UVit2DModel",)
"""Models whose own checkpoints fail in diffusers 0.42.1 (keywords they do not pass on)."""
DEFAULT_TOKENS = 77
DEFAULT_IMAGE = (3, 512, 512)


def build_diffusers(spec: JobSpec, notebook: Notebook) -> Built:
    """Return the diffusion model *spec* names, on stand-ins.

    Raises:
        SpecError: if numbers of the configuration are out of bounds.
        UnsupportedJobError: for unknown names and denoisers.
    """
    config = _configuration(spec, notebook)
    check_config(config)
    part = next((name for name in DENOISERS if isinstance(config.get(name), dict)), None)
    own = config if part is None else config[part]
    kind = str(own.get("_class_name", ""))
    feed = FEEDERS.get(kind)
    if feed is None:
        raise UnsupportedJobError(
            f"model.config._class_name: '{kind:.60}' is not modelled; known: {', '.join(FEEDERS)}",
            code=UnknownCode.MODEL,
            path="model.config._class_name",
        )
    low = AUTOCAST.get(spec.training.precision, WEIGHTS[spec.training.precision])
    frozen = beside(config if part else {}, low)
    # Adapted denoisers are frozen in the lower dtype, trained ones keep their own.
    is_adapted = spec.adapter is not None
    model = made(own, low if is_adapted else WEIGHTS[spec.training.precision])
    return _built(spec, model, feed, frozen, low, notebook)


def made(config: Mapping[str, Any], dtype: torch.dtype) -> Any:
    """Return the model of diffusers *config* describes, in *dtype*."""
    kind = getattr(diffusers, str(config["_class_name"]))
    with default_dtype(dtype), torch.device("meta"):
        model = kind.from_config(dict(config))
    return on_stand_ins(model.to(dtype))


def _built(
    spec: JobSpec, model: Any, feed: Feed, frozen: Beside, low: torch.dtype, notebook: Notebook
) -> Built:
    if spec.input.image_size is None:
        notebook.assume(
            AssumptionCode.LENGTH, "input.imageSize", "3x512x512", "absent: usual of these models"
        )
    size = spec.input.image_size or DEFAULT_IMAGE
    kind = type(model).__name__
    tokens = spec.input.sequence_length or DEFAULT_TOKENS
    factor = frozen.factor or feed.factor

    def make_batch(shapes: Shapes) -> Batch:
        many = shapes.batch_size
        if not frozen.models:
            return feed.make(model.config, _sizes(many), low)
        return {
            "pixels": stand_in(many, *size, dtype=frozen.vae_dtype or low),
            "ids": stand_in(many, tokens, dtype=torch.int64),
        }

    def _sizes(many: int) -> Sizes:
        height, width = size[1] // factor, size[2] // factor
        return Sizes(batch=many, height=height, width=width, tokens=tokens)

    def forward(module: nn.Module, batch: Batch) -> Any:
        given = batch
        if frozen.models:
            with torch.no_grad():
                frozen.encode(batch)
            given = feed.make(model.config, _sizes(batch["ids"].shape[0]), low)
        noisy = feed.noisy(given)
        predicted = module(**{**given, **noisy})
        return (
            predicted[0]
            if isinstance(predicted, tuple)
            else getattr(predicted, "sample", predicted)
        )

    def loss(outputs: Any, _: Batch) -> torch.Tensor:
        target = torch.empty_like(outputs)
        return functional.mse_loss(outputs.float(), target.float())

    def checkpoint(_: bool | None) -> None:
        if kind in BROKEN_SWITCH:
            for layer in layers_of(model):
                checkpointed(layer)
        else:
            model.enable_gradient_checkpointing()

    return Built(
        model=model,
        make_batch=make_batch,
        forward=forward,
        loss=loss,
        checkpoint=checkpoint
        if getattr(model, "_supports_gradient_checkpointing", False)
        else None,
        library="diffusers",
        companions=frozen.models,
    )


def _configuration(spec: JobSpec, notebook: Notebook) -> dict[str, Any]:
    """Return the inline configuration, or that of a known pipeline of this name."""
    if spec.model.config:
        return dict(spec.model.config)
    known = known_model(spec.model.name)
    if known is None or known.library != "diffusers" or known.remote_code:
        raise UnsupportedJobError(
            f"model.name: the architecture of '{spec.model.name:.80}' is not known",
            code=UnknownCode.MODEL,
            path="model.name",
            hint="give the denoiser's config.json inline as model.config",
        )
    notebook.assume(
        AssumptionCode.MODEL_DEFAULT,
        "model.config",
        known.id,
        "absent: the architecture the catalog has under this name",
    )
    return dict(known.config)
