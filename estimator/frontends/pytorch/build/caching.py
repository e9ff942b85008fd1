"""Models that cannot be trained with the cache they make: they are run without.

    model, batch -> model, with a note if its cache is off

transformers makes a cache in training too. Most caches are transformers' own, which training does
not mind. A model with states of its own writes over what backward needs (xLSTM), and one that does
not say how many layers it has gets none (BLT): a real step fails alike, so a job that runs has the
cache off.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from transformers import Cache

from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import REFUSALS, Batch, short
from estimator.notes import AssumptionCode


def turn_off_failing_cache(
    model: Any,
    make: Callable[[], Batch],
    loss: Callable[[Any, Batch], torch.Tensor],
    notebook: Notebook,
) -> None:
    """Turn the cache of *model* off if a step on a small batch fails with it."""
    if not getattr(model.config, "use_cache", False) or not _has_a_cache_of_its_own(model):
        return
    failed = _failure(model, make(), loss)
    if failed is None:
        return
    model.config.use_cache = False
    notebook.assume(
        AssumptionCode.MODEL_DEFAULT,
        "training.useCache",
        "false",
        f"the model cannot be trained with its cache: {short(failed)}",
    )


def _has_a_cache_of_its_own(model: Any) -> bool:
    """Return whether the cache is no plain one, or the configuration does not count its layers."""
    names = vars(sys.modules[type(model).__module__])
    own = any(
        isinstance(value, type)
        and name.endswith("Cache")
        and value.__module__ == type(model).__module__
        and not issubclass(value, Cache)
        for name, value in names.items()
    )
    return own or not hasattr(model.config.get_text_config(decoder=True), "num_hidden_layers")


def _failure(
    model: Any, batch: Batch, loss: Callable[[Any, Batch], torch.Tensor]
) -> Exception | None:
    """Return why a forward and a backward fail, or None. No gradient is left behind."""
    try:
        loss(model(**batch), batch).backward()  # type: ignore[no-untyped-call]
    except (*REFUSALS, UnsupportedJobError) as error:
        return error
    finally:
        model.zero_grad(set_to_none=True)
    return None
