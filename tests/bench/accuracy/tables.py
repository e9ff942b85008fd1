"""Tables of the report and the words in them.

rows of text -> Markdown; scored cases -> lines of one metric, view, group and standing
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from tests.bench.accuracy.groups import Scored, Standing, standing

NONE = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What cases share that may be summed up in one line."""

    metric: str
    view: str
    group: str
    standing: str


def by_line(rows: Iterable[Scored]) -> list[tuple[Line, list[Scored]]]:
    """Return *rows* by line: by metric and view first, sharp cases before the others."""
    lines: dict[Line, list[Scored]] = {}
    for row in rows:
        reading = row.case.reading
        line = Line(
            metric=reading.metric,
            view=reading.view or NONE,
            group=row.case.group,
            standing=standing(row.case),
        )
        lines.setdefault(line, []).append(row)
    order = list(Standing)
    return sorted(
        lines.items(),
        key=lambda item: (*astuple(item[0])[:3], order.index(Standing(item[0].standing))),
    )


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Return a table whose first *words* columns are words and whose others are numbers."""
    rule = ["---"] * words + ["---:"] * (len(headings) - words)
    lines = [list(headings), rule, *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    """Return *text* so that it stays within its cell."""
    return " ".join(text.split()).replace("|", "\\|")


def percent(share: float | None, *, signed: bool = False) -> str:
    """Return a share in percent with one decimal."""
    if share is None:
        return NONE
    text = f"{100 * share:+.1f} %" if signed else f"{100 * share:.1f} %"
    return text.replace("-0.0 %", "0.0 %").replace("+0.0 %", "0.0 %")


def ratio(value: float | None) -> str:
    """Return a ratio with two decimals."""
    return NONE if value is None else f"{value:.2f}"
