"""Matching predictions to objects without values: every object gets a prediction of its own.

    (nothing) -> transformers whose matchers run without scipy

Matching runs on the host, so it takes no memory of the card beyond the costs it is given. Source:
transformers 5.24.0 `loss/loss_for_object_detection.py` and the matchers beside their models.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch
from transformers.utils import import_utils

ABSENT = object()
MATCH = "linear_sum_assignment"


def _match(cost: Any, maximize: bool = False) -> tuple[Any, Any]:
    """Return a pair for each row or column, whichever are fewer."""
    del maximize
    count = min(cost.shape)
    return numpy.arange(count), numpy.arange(count)


@contextmanager
def scipy_not_asked_for() -> Iterator[None]:
    """Let models that need scipy for matching be built where it is not installed."""
    mapping = import_utils.BACKENDS_MAPPING
    before = mapping["scipy"]
    mapping["scipy"] = (lambda: True, before[1])
    try:
        yield
    finally:
        mapping["scipy"] = before


@contextmanager
def matched_without_values() -> Iterator[None]:
    """Match without values in every module of transformers imported so far."""
    saved: list[tuple[dict[str, Any], Any]] = []
    for name, module in list(sys.modules.items()):
        names = vars(module) if name.startswith("transformers.") else {}
        if MATCH in names or any("Matcher" in key for key in names):
            saved.append((names, names.get(MATCH, ABSENT)))
            names[MATCH] = _match
    try:
        with scipy_not_asked_for():
            yield
    finally:
        for names, value in saved:
            if value is ABSENT:
                del names[MATCH]
            else:
                names[MATCH] = value


@contextmanager
def unchecked_distributions() -> Iterator[None]:
    """Let distributions be made of parameters without values: a check of those asks for values."""
    kind = torch.distributions.Distribution
    before = kind._validate_args
    kind.set_default_validate_args(False)
    try:
        yield
    finally:
        kind.set_default_validate_args(before)
