"""Bounds on the whole numbers of a model configuration, checked before anything is built from it.

    model.config -> (nothing), or every number out of bounds

Fractions decide no size by themselves; what they scale is caught by the count of elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from estimator.errors import Problem, SpecError

MAX_DEPTH = 4096
MAX_NUMBER = 1 << 24
MAX_LIST = 4096
MAX_ELEMENTS = 1 << 46

DEPTHS = ("layers", "n_layer", "depth", "blocks", "n_head", "num_heads", "experts")
"""Parts of keys whose number is how often something is repeated."""
FREE = ("_id", "_ids", "theta", "position", "length", "window", "eps", "seed", "max", "token")
"""Parts of keys whose number makes nothing larger by itself."""


def check_config(config: Mapping[str, Any], path: str = "model.config") -> None:
    """Refuse numbers that no real model has.

    Raises:
        SpecError: with every number out of bounds.
    """
    problems: list[Problem] = []
    _check(config, path, "", problems)
    if problems:
        raise SpecError(problems)


def _check(value: Any, path: str, key: str, problems: list[Problem]) -> None:
    if isinstance(value, Mapping):
        for name, item in value.items():
            _check(item, f"{path}.{name}", str(name), problems)
    elif isinstance(value, list):
        if len(value) > MAX_LIST:
            problems.append(Problem(path=path, message=f"more than {MAX_LIST} values"))
            return
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", key, problems)
    elif isinstance(value, int) and not isinstance(value, bool):
        limit = _limit(key)
        if value > limit or value < -MAX_NUMBER:
            problems.append(Problem(path=path, message=f"{value} is more than {limit}"))


def _limit(key: str) -> int:
    if any(part in key for part in DEPTHS):
        return MAX_DEPTH
    return 1 << 40 if any(part in key for part in FREE) else MAX_NUMBER


def check_elements(model: nn.Module) -> int:
    """Return the number of parameter elements, refusing models no card or cluster could hold.

    Raises:
        SpecError: if there are more than 2^46.
    """
    elements = sum(parameter.numel() for parameter in model.parameters())
    if elements > MAX_ELEMENTS:
        message = f"{elements} parameter elements are more than {MAX_ELEMENTS}"
        raise SpecError([Problem(path="model.config", message=message)])
    return elements
