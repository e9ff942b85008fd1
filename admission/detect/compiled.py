"""What a Keras model was compiled with, as its archives keep it.

    `compile_config` or `training_config` -> the keys of `training` it stands for

Only an optimizer of Keras' own that is plainly named is taken. Losses and metrics are not read.
Source: keras 3.15.1 `src/saving/serialization_lib.py` and `src/legacy/saving/saving_utils.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9]{1,40}", re.ASCII)
_WRAPPERS = ("lossscaleoptimizer", "multioptimizer")
"""Optimizers that hold others."""


def compiled_training(compiled: object) -> dict[str, Any]:
    """Return `optimizer` and `ema` of a model that was compiled; empty if that is not told."""
    if not isinstance(compiled, Mapping):
        return {}
    optimizer = compiled.get("optimizer_config", compiled.get("optimizer"))
    if isinstance(optimizer, str):
        optimizer = {"class_name": optimizer}
    if not isinstance(optimizer, Mapping):
        return {}
    name, config = optimizer.get("class_name"), optimizer.get("config")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.lower() in _WRAPPERS:
        return {}
    config = config if isinstance(config, Mapping) else {}
    found: dict[str, Any] = {"name": name.lower()}
    for key, ours in (("momentum", "momentum"), ("weight_decay", "weightDecay")):
        value = config.get(key)
        if isinstance(value, int | float) and 0 < value <= 1:
            found[ours] = float(value)
    if config.get("nesterov") is True:
        found["nesterov"] = True
    return {"optimizer": found, **({"ema": True} if config.get("use_ema") is True else {})}
