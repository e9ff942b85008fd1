"""Larger tables of what programs ship: their named configurations.

name -> table, from `data/NAME.json`
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from admission.detect.versions import version_of

__all__ = ["differs_between_releases", "load_table", "row_of"]


@cache
def load_table(name: str) -> Mapping[str, Any]:
    """Return the table called *name*, with its `source`."""
    text = Path(__file__).with_name("data").joinpath(f"{name}.json").read_text("utf-8")
    table: Mapping[str, Any] = json.loads(text)
    return table


def row_of(rows: list[list[Any]], version: str | None) -> Mapping[str, Any] | None:
    """Return what holds in release *version* of *rows* (first release, values); None: the newest.

    None: that release does not have it.
    """
    numbers = version_of(version) if version else None
    fitting = [
        values for since, values in rows if numbers is None or (version_of(since) or ()) <= numbers
    ]
    found: Mapping[str, Any] | None = fitting[-1] if fitting else None
    return found


def differs_between_releases(rows: list[list[Any]], keys: Iterable[str]) -> bool:
    """Return whether one of *keys* has another value in another release of *rows*."""
    wanted = tuple(keys)
    found = [tuple(str(values.get(key)) for key in wanted) for _, values in rows if values]
    return len(set(found)) > 1
