"""Parameters of a test of which a few are run each time and all by `make soak`.

values, those that differ in kind -> parameters, the others marked `sweep`
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet


def spread(values: Iterable[Any], *, of: Sequence[Any]) -> list[ParameterSet]:
    """Return a parameter a value; what is not among *of* is a sweep.

    Raises:
        ValueError: if one of *of* is no value: it would be run by nobody.
    """
    found = list(values)
    if missing := [each for each in of if each not in found]:
        raise ValueError(f"no such values: {missing}")
    return [_parameter(value, is_kept=value in of) for value in found]


def _parameter(value: Any, *, is_kept: bool) -> ParameterSet:
    parts = value if isinstance(value, tuple) else (value,)
    return pytest.param(*parts, marks=() if is_kept else pytest.mark.sweep)
