"""Answers on disk, and two runs side by side.

answers <-> lines of JSON; answers, answers -> what moved
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tests.bench.accuracy.answers import answer_from, document_of
from tests.bench.accuracy.groups import Scored
from tests.bench.accuracy.run import Answers
from tests.bench.accuracy.scoring import Score

NOTABLE = 0.001
"""A relative move that is worth a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The score of one case before and after; absent where there is no answer."""

    id: str
    before: Score | None
    after: Score | None

    @property
    def size(self) -> float:
        """Return how far the estimate or a bound moved, relative to the reading."""
        if self.before is None or self.after is None:
            return 0.0 if self.before is self.after else math.inf
        ends = zip(_sizes(self.before), _sizes(self.after), strict=True)
        return max(abs(after - before) for before, after in ends) / self.after.measured


def moves(before: Sequence[Scored], after: Sequence[Scored]) -> list[Move]:
    """Return the cases of both whose estimate or bounds moved, those that moved most first."""
    known = {row.case.id: row.score for row in before}
    found = [
        Move(id=row.case.id, before=known[row.case.id], after=row.score)
        for row in after
        if row.case.id in known
    ]
    return sorted((one for one in found if one.size > NOTABLE), key=lambda one: (-one.size, one.id))


def _sizes(score: Score) -> tuple[int, int, int]:
    return score.least or 0, score.estimated, score.most


def write_rows(path: Path, answers: Answers, rows: Sequence[Scored]) -> None:
    """Write one line an answer, sorted by id: its score where it is of a measured case."""
    scores = {row.case.id: _score(row) for row in rows}
    lines = (
        orjson.dumps({"id": name, **scores.get(name, {}), **document_of(answers[name])})
        for name in sorted(answers)
    )
    path.write_bytes(b"\n".join(lines) + b"\n")


def read_answers(path: Path) -> Answers:
    """Return the answers that `write_rows` wrote."""
    rows = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    return {row["id"]: answer_from(row) for row in rows}


def _score(row: Scored) -> dict[str, Any]:
    reading = row.case.reading
    facts: dict[str, Any] = {
        "group": row.case.group,
        "metric": reading.metric,
        "view": reading.view,
        "isFitted": row.is_fitted,
        "measured": reading.nbytes,
    }
    if row.score is None:
        return facts
    return facts | {
        "inZero": row.score.in_zero,
        "estimated": row.score.estimated,
        "least": row.score.least,
        "most": row.score.most,
        "signedError": round(row.score.signed_error, 6),
        "isInside": row.score.is_inside,
    }
