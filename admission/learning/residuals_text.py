"""Residuals as they are kept: JSON in one key of a ConfigMap.

    Residuals <-> text

Whoever may write the ConfigMap may write anything: what is read is bounded, and what is no sample
is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from admission.learning.residuals import (
    MOST_GROUPS,
    MOST_SAMPLES,
    RATIOS,
    Residuals,
    Sample,
    Samples,
    group_of,
)
from admission.learning.version import VERSION

KEY = "calibration.json"
MAX_TEXT = 700 << 10
"""Characters: a full table is half of it, and an object of the API server may have 1 MiB."""
_MAX_WORD = 64


def written(residuals: Residuals) -> str:
    """Return *residuals* as text, the same for the same ones."""
    groups = {
        group.key: [[each.namespace, each.spec, round(each.ratio, 4), each.day] for each in samples]
        for group, samples in sorted(residuals.items())
    }
    return orjson.dumps({"version": VERSION, "groups": groups}).decode()


def read(text: str | None) -> Residuals:
    """Return the residuals in *text*; none of what is not as `written` writes it."""
    if not text or len(text) > MAX_TEXT:
        return {}
    try:
        document: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    groups = document.get("groups") if isinstance(document, dict) else None
    if not isinstance(groups, Mapping) or document.get("version") != VERSION:
        return {}
    found = {}
    for key, rows in list(groups.items())[:MOST_GROUPS]:
        group = group_of(key)
        samples = _samples(rows)
        if group is not None and samples:
            found[group] = samples
    return found


def _samples(rows: Any) -> Samples:
    if not isinstance(rows, list):
        return ()
    found = (_sample(row) for row in rows[:MOST_SAMPLES])
    return tuple(each for each in found if each is not None)


def _sample(row: Any) -> Sample | None:
    if not isinstance(row, list) or len(row) != 4:
        return None
    namespace, spec, ratio, day = row
    if not all(isinstance(each, str) and 0 < len(each) <= _MAX_WORD for each in (namespace, spec)):
        return None
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or type(day) is not int:
        return None
    if not RATIOS[0] <= ratio <= RATIOS[1] or not 0 <= day < 1 << 20:
        return None
    return Sample(namespace=namespace, spec=spec, ratio=float(ratio), day=day)
