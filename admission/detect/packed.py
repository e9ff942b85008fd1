"""How a checkpoint says that its weights are packed, in a spec's words.

    config.json's quantization_config -> quantization, or None where a spec has no word for it

Source: huggingface/transformers v5.24.0 src/transformers/utils/quantization_config.py
(BitsAndBytesConfig, GPTQConfig, AwqConfig: names of the keys and their defaults).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_MAX_SKIPPED = 256
_MAX_NAME = 200


def packed_as(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what `quantization` is of a checkpoint with *config*.

    None where it is not packed, or in a way that no spec can say: the estimator then says which.
    """
    stored = config.get("quantization_config")
    if not isinstance(stored, Mapping):
        return None
    match stored.get("quant_method"):
        case "gptq" | "awq" as scheme:
            bits = stored.get("bits", 4)
            return {"bits": bits, "scheme": scheme} if type(bits) is int else None
        # Checkpoints older than the key have it by the library's own switches.
        case "bitsandbytes" | None:
            return _bitsandbytes(stored)
    return None


def _bitsandbytes(stored: Mapping[str, Any]) -> dict[str, Any] | None:
    is_four = stored.get("load_in_4bit", stored.get("_load_in_4bit")) is True
    is_eight = stored.get("load_in_8bit", stored.get("_load_in_8bit")) is True
    if is_four == is_eight:
        return None
    if is_eight:
        found: dict[str, Any] = {"bits": 8, "scheme": "int8"}
    else:
        scheme = stored.get("bnb_4bit_quant_type", "fp4")
        if scheme not in ("nf4", "fp4"):
            return None
        compute = str(stored.get("bnb_4bit_compute_dtype", "float32")).removeprefix("torch.")
        found = {
            "bits": 4,
            "scheme": scheme,
            "doubleQuant": stored.get("bnb_4bit_use_double_quant") is True,
            "computeDtype": _DTYPES.get(compute, "fp32"),
        }
    skipped = stored.get("llm_int8_skip_modules")
    if isinstance(skipped, list) and 0 < len(skipped) <= _MAX_SKIPPED:
        names = [name for name in skipped if isinstance(name, str) and 0 < len(name) <= _MAX_NAME]
        if len(names) == len(skipped):
            found["skipModules"] = names
    return found
