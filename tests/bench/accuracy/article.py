"""The article's comparison: its five kinds of model under three frameworks, beside shape inference.

    data/article.yaml, answers -> rows of a table

Each row is a job of our own sizes, estimated, and the plain sum of its shapes. Where a run of the
same kind and framework was measured, that reading stands beside our estimate of that run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from estimator.baselines import shape_inference_bytes
from estimator.units import MIB
from tests.bench.accuracy.answers import Answer
from tests.bench.accuracy.groups import Scored
from tests.bench.accuracy.run import Answers, Question
from tests.bench.accuracy.tables import NONE, cell, markdown, percent

DATA = Path(__file__).parents[1] / "data" / "article.yaml"
HEADINGS = (
    "model",
    "framework",
    "batch",
    "allocated, MiB",
    "shape inference, MiB",
    "of ours",
    "on the card, MiB",
    "method",
    "a run of its kind",
    "measured, MiB",
    "estimated, MiB",
    "e",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One kind of model under one framework."""

    kind: str
    spec: Mapping[str, Any]
    gpu: str
    case: str | None = None
    """The published run of this kind."""

    @property
    def id(self) -> str:
        """Return what its answer is found by."""
        return f"article/{self.kind}-{self.spec['framework']}"


def entries() -> list[Entry]:
    """Return every row of the article's table."""
    document = yaml.safe_load(DATA.read_text("utf-8"))
    return [
        Entry(kind=row["kind"], spec=row["spec"], gpu=document["gpu"], case=row.get("case"))
        for row in document["rows"]
    ]


def article_questions(found: Iterable[Entry]) -> list[Question]:
    """Return what is asked for the table."""
    return [Question(spec=entry.spec, gpu=entry.gpu, ids=(entry.id,)) for entry in found]


def article_table(found: Sequence[Entry], answers: Answers, rows: Sequence[Scored]) -> str:
    """Return the table; *rows* are the scored cases."""
    cases = {row.case.id: row for row in rows}
    return markdown(
        HEADINGS,
        (_line(entry, answers, cases.get(entry.case or "")) for entry in found),
        words=2,
    )


def _line(entry: Entry, answers: Answers, measured: Scored | None) -> tuple[str, ...]:
    answer = answers.get(entry.id)
    first = (entry.kind, entry.spec["framework"], str(entry.spec["input"]["batchSize"]))
    if not isinstance(answer, Answer) or answer.peak.allocated is None:
        ours = (NONE,) * 5
    else:
        shapes = shape_inference_bytes(answer.breakdown)
        ours = (
            _mib(answer.peak.allocated),
            _mib(shapes),
            percent(shapes / answer.peak.allocated),
            _mib(answer.peak.device),
            answer.method,
        )
    return (*first, *ours, *_reading(measured))


def _reading(row: Scored | None) -> tuple[str, ...]:
    if row is None or row.score is None:
        return (NONE,) * 4
    score = row.score
    return (
        cell(row.case.id),
        _mib(score.measured),
        _mib(score.estimated),
        percent(score.signed_error, signed=True),
    )


def _mib(nbytes: int) -> str:
    return f"{nbytes / MIB:,.0f}"
