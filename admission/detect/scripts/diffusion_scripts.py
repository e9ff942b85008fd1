"""The training examples of diffusers: what they train and what they take by default.

    script name -> DiffusionScript

Source: huggingface/diffusers@58eb52c0 examples (`parse_args` of each script).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from admission.detect.words import words


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionScript:
    """What one script does when its flags are silent."""

    batch: int
    resolution: int = 512
    rank: int | None = None
    """Of the LoRA adapter it trains; None: it trains all weights of the denoiser."""
    part: str = ""
    """What it trains where that is neither all of the denoiser nor an adapter."""


_FULL_16 = DiffusionScript(batch=16)
_LORA_4 = DiffusionScript(batch=4, rank=4)
_EMBEDDING = DiffusionScript(batch=16, part="one embedding")
_CONTROL = DiffusionScript(batch=4, part="a ControlNet beside the frozen denoiser")

SCRIPTS: Mapping[str, DiffusionScript] = {
    "train_text_to_image": _FULL_16,
    "train_text_to_image_sdxl": DiffusionScript(batch=16, resolution=1024),
    "train_text_to_image_lora": DiffusionScript(batch=16, rank=4),
    "train_text_to_image_lora_sdxl": DiffusionScript(batch=16, resolution=1024, rank=4),
    "train_instruct_pix2pix": DiffusionScript(batch=16, resolution=256),
    "train_instruct_pix2pix_sdxl": DiffusionScript(batch=16, resolution=256),
    "train_dreambooth": DiffusionScript(batch=4),
    "train_dreambooth_flux": DiffusionScript(batch=4),
    "train_dreambooth_sd3": DiffusionScript(batch=4),
    "train_dreambooth_lora_sdxl": DiffusionScript(batch=4, resolution=1024, rank=4),
    "train_dreambooth_lora_sdxl_advanced": DiffusionScript(batch=4, resolution=1024, rank=4),
    "train_dreambooth_lora_krea2": DiffusionScript(batch=4, rank=32),
    **dict.fromkeys(
        words(
            "train_dreambooth_lora train_dreambooth_lora_flux train_dreambooth_lora_flux2 "
            "train_dreambooth_lora_flux2_img2img train_dreambooth_lora_flux2_klein "
            "train_dreambooth_lora_flux2_klein_img2img train_dreambooth_lora_flux_kontext "
            "train_dreambooth_lora_flux_advanced train_dreambooth_lora_hidream "
            "train_dreambooth_lora_ideogram4 train_dreambooth_lora_lumina2 "
            "train_dreambooth_lora_qwen_image train_dreambooth_lora_sana "
            "train_dreambooth_lora_sd3 train_dreambooth_lora_sd15_advanced "
            "train_dreambooth_lora_z_image"
        ),
        _LORA_4,
    ),
    "train_controlnet": _CONTROL,
    "train_controlnet_flux": _CONTROL,
    "train_controlnet_sd3": _CONTROL,
    "train_controlnet_sdxl": _CONTROL,
    "train_t2i_adapter_sdxl": DiffusionScript(
        batch=4, resolution=1024, part="a T2I adapter beside the frozen denoiser"
    ),
    "train_custom_diffusion": DiffusionScript(
        batch=4, part="keys and values of the cross attention"
    ),
    "textual_inversion": _EMBEDDING,
    "textual_inversion_sdxl": _EMBEDDING,
}
"""Stem of the script -> its defaults."""
