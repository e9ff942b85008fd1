"""What a reading does not show because the meter's zero already held it.

data/zero.yaml, group and spec of a case -> parts of a breakdown
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PARTS = frozenset({"context", "libraries", "parameters"})
"""Parts of a breakdown that can be there before the first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Zero:
    """What the zero of one group's meter held; with *model_source*, only for such models."""

    group: str
    lacks: tuple[str, ...]
    model_source: str | None = None

    def takes(self, group: str, spec: Mapping[str, Any]) -> bool:
        """Return whether a case of *group* with *spec* was read by this meter."""
        if group != self.group:
            return False
        return self.model_source is None or spec["model"].get("source") == self.model_source


def read_zeroes(path: Path) -> tuple[Zero, ...]:
    """Return the meters of the file.

    Raises:
        ValueError: if a meter lacks what is no part of an estimate.
    """
    return tuple(_zero(item) for item in yaml.safe_load(path.read_text("utf-8")))


def lacking(zeroes: Sequence[Zero], group: str, spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts that a reading of *spec* in *group* does not show."""
    return tuple(part for zero in zeroes if zero.takes(group, spec) for part in zero.lacks)


def _zero(item: Mapping[str, Any]) -> Zero:
    lacks = tuple(item["lacks"])
    if not PARTS.issuperset(lacks):
        raise ValueError(f"zero.yaml: lacks {lacks}, which are not all of {sorted(PARTS)}")
    cases = item["cases"]
    return Zero(group=cases["group"], lacks=lacks, model_source=cases.get("modelSource"))
