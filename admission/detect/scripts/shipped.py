"""DeepSpeed configurations that programs bring along, by the path people name them with.

    deepspeed_configs/zero3_bf16.json -> the configuration, or None

They lie in the image, so they are not seen; these are what their repositories hold.
Source: axolotl-ai-cloud/axolotl@067b021c deepspeed_configs/*.json;
hiyouga/LLaMA-Factory@ff6d4d12 examples/deepspeed/*.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_AUTO: Mapping[str, Any] = {"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}}
_BF16: Mapping[str, Any] = {"bf16": {"enabled": True}}
_CPU: Mapping[str, Any] = {"device": "cpu"}
_HALF_BILLION: Mapping[str, Any] = {
    "allgather_bucket_size": 500_000_000,
    "reduce_bucket_size": 500_000_000,
}

_SHIPPED: Mapping[str, Mapping[str, Any]] = {
    "deepspeed_configs/zero1.json": {**_AUTO, "zero_optimization": {"stage": 1}},
    "deepspeed_configs/zero1_torch_compile.json": {**_AUTO, "zero_optimization": {"stage": 1}},
    "deepspeed_configs/zero2.json": {
        **_AUTO,
        "zero_optimization": {"stage": 2, "offload_optimizer": _CPU},
    },
    "deepspeed_configs/zero2_torch_compile.json": {
        **_AUTO,
        "zero_optimization": {"stage": 2, "offload_optimizer": _CPU},
    },
    "deepspeed_configs/zero3.json": {**_AUTO, "zero_optimization": {"stage": 3}},
    "deepspeed_configs/zero3_bf16.json": {**_BF16, "zero_optimization": {"stage": 3}},
    "deepspeed_configs/zero3_bf16_cpuoffload_all.json": {
        **_BF16,
        "zero_optimization": {"stage": 3, "offload_optimizer": _CPU, "offload_param": _CPU},
    },
    "deepspeed_configs/zero3_bf16_cpuoffload_params.json": {
        **_BF16,
        "zero_optimization": {"stage": 3, "offload_param": _CPU},
    },
    "examples/deepspeed/ds_z0_config.json": {**_AUTO, "zero_optimization": {"stage": 0}},
    "examples/deepspeed/ds_z2_config.json": {
        **_AUTO,
        "zero_optimization": {"stage": 2, **_HALF_BILLION},
    },
    "examples/deepspeed/ds_z2_offload_config.json": {
        **_AUTO,
        "zero_optimization": {"stage": 2, "offload_optimizer": _CPU, **_HALF_BILLION},
    },
    "examples/deepspeed/ds_z3_config.json": {**_AUTO, "zero_optimization": {"stage": 3}},
    "examples/deepspeed/ds_z3_offload_config.json": {
        **_AUTO,
        "zero_optimization": {"stage": 3, "offload_optimizer": _CPU, "offload_param": _CPU},
    },
}
"""End of the path -> what of the file decides memory."""


def shipped_deepspeed(path: str) -> Mapping[str, Any] | None:
    """Return the configuration that lies at *path* in its program's repository."""
    return next((found for end, found in _SHIPPED.items() if f"/{path}".endswith(f"/{end}")), None)
