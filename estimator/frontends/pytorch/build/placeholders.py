"""Which tokens stand for images or sound: as many as the model makes features of.

    model -> the model, whose masks of placeholders select what their features need

A batch has no values, and a mask of which nothing is known selects everything. Models that add
features to the tokens they belong to need exactly as many. Source: transformers 5.24.0
`get_placeholder_mask` of 105 models, for example `Qwen3VLModel`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import torch

METHOD = "get_placeholder_mask"


@contextmanager
def counted_placeholders(model: Any) -> Iterator[None]:
    """Let the masks of placeholders in *model* select as many tokens as there are features."""
    changed = [part for part in model.modules() if hasattr(type(part), METHOD)]
    try:
        for part in changed:
            setattr(part, METHOD, _counted(getattr(part, METHOD)))
        yield
    finally:
        for part in changed:
            delattr(part, METHOD)


def _counted(own: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(own)

    def masks(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        features = {
            name: value
            for name, value in given.items()
            if name.endswith("features") and isinstance(value, torch.Tensor)
        }
        embeds = given["inputs_embeds"]
        if embeds is None or not features:
            return own(*args, **kwargs)
        whole = {name: _a_feature_a_token(embeds, value.dim()) for name, value in features.items()}
        made = own(**{**given, **whole})
        names = [name for name in signature.parameters if name.endswith("features")]
        if isinstance(made, torch.Tensor):
            return _selecting(made, embeds, next(iter(features.values())))
        return tuple(
            _selecting(mask, embeds, features[name]) if name in features else mask
            for name, mask in zip_longest(names, made)
            if mask is not None
        )

    return masks


def _a_feature_a_token(embeds: torch.Tensor, axes: int) -> torch.Tensor:
    """Return features for every token, as the own check of the model expects, in one element."""
    batch, tokens, width = embeds.shape
    return embeds.new_empty(1).expand(*[1] * (axes - 2), batch * tokens, width)


def _selecting(mask: torch.Tensor, embeds: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    """Return a mask like *mask* that is known to select a token for each of *features*."""
    batch, tokens, width = embeds.shape
    count = min(features.numel() // width, batch * tokens)
    chosen = selecting(1, batch * tokens, count).view(batch, tokens)
    return chosen.unsqueeze(-1).expand(mask.shape) if mask.dim() > chosen.dim() else chosen


def selecting(rows: int, length: int, count: int) -> torch.Tensor:
    """Return a mask that is known to select *count* of *length* places in every row."""
    places = torch.empty(1, dtype=torch.int64, device="meta").expand(rows, count)
    mask = torch.zeros(rows, length, dtype=torch.bool, device="meta")
    return mask.scatter_(1, places, True)
