"""Check `model.options` against a constructor's signature.

options, signature -> keyword arguments, or every problem
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.notes import UnknownCode

FORBIDDEN = frozenset(
    [
        "weights",
        "weights_backbone",
        "pretrained",
        "pretrained_cfg",
        "pretrained_cfg_overlay",
        "checkpoint_path",
        "cache_dir",
        "progress",
        "norm_layer",
        "act_layer",
        "block",
    ]
)
"""Keywords that load files or take code."""

MAX_NUMBER = 1 << 20


def checked_options(
    options: Mapping[str, Any], constructors: Iterable[Callable[..., Any]]
) -> dict[str, Any]:
    """Return *options* as keyword arguments of one of the *constructors*.

    Raises:
        SpecError: with a problem for each option that none of them takes, or that is out of bounds.
    """
    known: set[str] = set()
    for constructor in constructors:
        known.update(inspect.signature(constructor).parameters)
    known -= FORBIDDEN | {"self", "args", "kwargs"}
    problems = [
        Problem(path=f"model.options.{name}", message=message)
        for name, value in options.items()
        if (message := _problem(name, value, known))
    ]
    if problems:
        raise SpecError(problems)
    return dict(options)


def _problem(name: str, value: Any, known: set[str]) -> str | None:
    if name not in known:
        close = get_close_matches(name, known, n=3)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        return f"unknown option (value {value!r:.60}){hint}"
    if isinstance(value, (int, float)) and abs(value) > MAX_NUMBER:
        return f"{value} is more than {MAX_NUMBER}"
    if isinstance(value, str) and ("/" in value or len(value) > 64):
        return "paths and long texts are not accepted"
    return None


def unknown_model(name: str, known: Iterable[str], source: str) -> UnsupportedJobError:
    """Return the error for a model *name* that the zoo does not have."""
    close = get_close_matches(name, list(known), n=5, cutoff=0.5)
    return UnsupportedJobError(
        f"model.name: '{name:.80}' is not a {source} model",
        code=UnknownCode.MODEL,
        path="model.name",
        hint=f"close matches: {', '.join(close)}" if close else None,
    )
