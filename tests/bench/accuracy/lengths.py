"""Lengths that a publication left out.

data/lengths.yaml, group and spec of a case -> the spec with the length that was found
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLength:
    """One unknown length: what specs of *group* state, what is taken, which case told it."""

    group: str
    stated: int
    taken: int
    fitted: str


def read_lengths(path: Path) -> tuple[FoundLength, ...]:
    """Return the lengths of the file."""
    items = yaml.safe_load(path.read_text("utf-8"))
    return tuple(
        FoundLength(
            group=item["group"],
            stated=item["stated"],
            taken=item["taken"],
            fitted=item["fitted"],
        )
        for item in items
    )


def with_length(
    lengths: Sequence[FoundLength], group: str, spec: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return *spec* with the length that was found for its group, or as it is."""
    given = spec.get("input", {})
    for length in lengths:
        if length.group == group and given.get("sequenceLength") == length.stated:
            return {**spec, "input": {**given, "sequenceLength": length.taken}}
    return spec
