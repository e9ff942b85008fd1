"""transformers' optimizer names as a JobSpec's optimizer.

    `--optim` -> training.optimizer

Source: transformers 5.24.0 `training_args.py` OptimizerNames and `trainer_optimizer.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEFAULT = "adamw_torch_fused"
"""With torch 2.8 or newer; before, `adamw_torch`."""
DEFAULT_BEFORE_2_8 = "adamw_torch"

_EIGHT_BITS = {"bits": 8}
_PAGED = {"paged": True}

NAMES: Mapping[str, Mapping[str, Any]] = {
    "adamw_torch": {"name": "adamw"},
    "adamw_torch_fused": {"name": "adamw", "fused": True},
    "adamw_apex_fused": {"name": "adamw", "fused": True},
    "adamw_hf": {"name": "adamw", "foreach": False},
    "adafactor": {"name": "adafactor"},
    "adamw_anyprecision": {"name": "adamw_anyprecision"},
    "adamw_torch_4bit": {"name": "adamw_torch_4bit"},
    "adamw_torch_8bit": {"name": "adamw_torch_8bit"},
    "ademamix": {"name": "ademamix"},
    "ademamix_8bit": {"name": "ademamix", **_EIGHT_BITS},
    "sgd": {"name": "sgd"},
    "adagrad": {"name": "adagrad"},
    "adamw_bnb_8bit": {"name": "adamw", **_EIGHT_BITS},
    "adamw_8bit": {"name": "adamw", **_EIGHT_BITS},
    "lion_8bit": {"name": "lion", **_EIGHT_BITS},
    "lion_32bit": {"name": "lion"},
    "paged_adamw_32bit": {"name": "adamw", **_PAGED},
    "paged_adamw_8bit": {"name": "adamw", **_PAGED, **_EIGHT_BITS},
    "paged_ademamix_32bit": {"name": "ademamix", **_PAGED},
    "paged_ademamix_8bit": {"name": "ademamix", **_PAGED, **_EIGHT_BITS},
    "paged_lion_32bit": {"name": "lion", **_PAGED},
    "paged_lion_8bit": {"name": "lion", **_PAGED, **_EIGHT_BITS},
    "rmsprop": {"name": "rmsprop"},
    "rmsprop_bnb": {"name": "rmsprop"},
    "rmsprop_bnb_8bit": {"name": "rmsprop", **_EIGHT_BITS},
    "rmsprop_bnb_32bit": {"name": "rmsprop"},
}
"""Names not listed pass as they are: the estimator says whether it models them."""


def optimizer_of(name: str) -> dict[str, Any]:
    """Return the optimizer of transformers' *name*."""
    known = NAMES.get(name.lower())
    if known is not None:
        return dict(known)
    plain = "".join(char for char in name.lower() if char.isalnum() or char in "_.+-")
    return {"name": plain[:64] or "other"}
