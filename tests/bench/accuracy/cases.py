"""The measured runs the estimates are held against, as values.

    lines of JSON -> Case, Outcome

The fields are described in tests/bench/data/README.md. A spec is not parsed here: one that cannot
be read is a case without an answer, not a broken file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from tests.bench.accuracy.lengths import read_lengths, with_length
from tests.bench.accuracy.zero import lacking, read_zeroes

DATA = Path(__file__).parents[1] / "data"


class Metric(StrEnum):
    """What was read."""

    ALLOCATED = "allocated"
    ACTIVE = "active"
    RESERVED = "reserved"
    DEVICE = "device"


class View(StrEnum):
    """Whose memory a `device` figure is."""

    PROCESS = "process"
    CARD = "card"
    CARD_MINUS_IDLE = "cardMinusIdle"


class Quality(StrEnum):
    """How much of the run is known."""

    EXACT = "exact"
    NAMED = "named"
    BANDED = "banded"


class End(StrEnum):
    """How a job of known outcome ended."""

    RAN = "ran"
    OOM = "oom"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One measured peak. `tolerance` is the half-width of its rounding, relative."""

    metric: Metric
    view: View | None
    nbytes: int
    tolerance: float
    lacks: tuple[str, ...] = ()
    """Parts of a breakdown that the meter's zero already held (data/zero.yaml)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A published run: the job, the card, what was measured, what other tools said."""

    id: str
    group: str
    spec: Mapping[str, Any]
    gpu: str
    reading: Reading
    quality: Quality = Quality.EXACT
    assumed: tuple[str, ...] = ()
    unexpressed: tuple[str, ...] = ()
    source: str = ""
    baselines: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A published job that is known to have run or died; `cap_bytes` is what its allocator got."""

    id: str
    group: str
    spec: Mapping[str, Any]
    gpu: str
    end: End
    cap_bytes: int | None = None
    unexpressed: tuple[str, ...] = ()


def read_cases(path: Path = DATA / "cases.jsonl") -> tuple[Case, ...]:
    """Return every measured case, in the order of the file."""
    zeroes, lengths = read_zeroes(DATA / "zero.yaml"), read_lengths(DATA / "lengths.yaml")
    return tuple(
        _case(
            {**row, "spec": with_length(lengths, row["group"], row["spec"])},
            lacking(zeroes, row["group"], row["spec"]),
        )
        for row in _rows(path)
    )


def read_outcomes(path: Path = DATA / "cases-oom.jsonl") -> tuple[Outcome, ...]:
    """Return every job of known outcome, in the order of the file."""
    return tuple(_outcome(row) for row in _rows(path))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:
        for line in lines:
            yield orjson.loads(line)


def _case(row: Mapping[str, Any], lacks: tuple[str, ...]) -> Case:
    measured = row["measured"]
    view = measured.get("view")
    reading = Reading(
        metric=Metric(measured["metric"]),
        view=View(view) if view else None,
        nbytes=measured["bytes"],
        tolerance=measured["tolerance"],
        lacks=lacks,
    )
    return Case(
        id=row["id"],
        group=row["group"],
        spec=row["spec"],
        gpu=row["gpu"],
        reading=reading,
        quality=Quality(row["quality"]),
        assumed=tuple(row["assumed"]),
        unexpressed=tuple(row.get("unexpressed", ())),
        source=row["source"],
        baselines=row.get("baselines", {}),
    )


def _outcome(row: Mapping[str, Any]) -> Outcome:
    return Outcome(
        id=row["id"],
        group=row["group"],
        spec=row["spec"],
        gpu=row["gpu"],
        end=End(row["outcome"]),
        cap_bytes=row.get("capBytes"),
        unexpressed=tuple(row.get("unexpressed", ())),
    )
