"""What a partial run shows: one line a case, one a group.

scored cases, answers -> rich tables
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from estimator.units import MIB
from tests.bench.accuracy.answers import NoAnswer
from tests.bench.accuracy.groups import Scored, standing, summary
from tests.bench.accuracy.records import Move
from tests.bench.accuracy.run import Answers
from tests.bench.accuracy.scoring import Score
from tests.bench.accuracy.tables import NONE, by_line, percent, ratio

MOST_LINES = 80
RIGHT = ("measured", "estimated", "least", "most", "error", "most/least", "s")


def show(rows: Sequence[Scored], answers: Answers, console: Console) -> None:
    """Print *rows*, the worst first and no more than fit, and the figures of their groups."""
    console.print(_lines(rows, answers))
    if len(rows) > MOST_LINES:
        console.print(f"the {MOST_LINES} worst of {len(rows)}")
    console.print(_groups(rows))


def _lines(rows: Sequence[Scored], answers: Answers) -> Table:
    table = Table("case, MiB", "metric", box=None)
    for heading in RIGHT:
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in sorted(rows, key=_badness)[:MOST_LINES]:
        case, score, answer = row.case, row.score, answers[row.case.id]
        if score is None or isinstance(answer, NoAnswer):
            assert isinstance(answer, NoAnswer)
            reason = f"{answer.kind}: {answer.message}"[:70]
            table.add_row(case.id, case.reading.metric, *[""] * len(RIGHT), reason)
            continue
        sizes = (score.measured, score.estimated, score.least, score.most)
        table.add_row(
            case.id,
            case.reading.metric,
            *("" if size is None else f"{size / MIB:,.0f}" for size in sizes),
            percent(score.signed_error, signed=True),
            ratio(score.width),
            f"{answer.seconds:.1f}",
            _mark(row),
        )
    return table


def _badness(row: Scored) -> tuple[float, str]:
    error = float("inf") if row.score is None else abs(row.score.signed_error)
    return (-error, row.case.id)


def _mark(row: Scored) -> str:
    assert row.score is not None
    marks = ["" if row.score.is_inside else "OUTSIDE", "fitted" if row.is_fitted else ""]
    return " ".join(mark for mark in (*marks, standing(row.case)) if mark and mark != "sharp")


def _groups(rows: Sequence[Scored]) -> Table:
    headings = ("n", "none", "med |e|", "p90", "p95", "med e", "under", "P(fail)", "most/least")
    table = Table("group", "metric", "view", "standing", box=None)
    for heading in headings:
        table.add_column(heading, justify="right")
    for line, members in by_line(rows):
        figures = summary(members)
        table.add_row(
            line.group,
            line.metric,
            line.view,
            line.standing,
            str(figures.num_cases),
            str(figures.num_unanswered),
            percent(figures.median_error),
            percent(figures.p90_error),
            percent(figures.p95_error),
            percent(figures.middle_error, signed=True),
            percent(figures.under),
            percent(figures.failed),
            ratio(figures.width),
        )
    return table


def show_moves(moves: Sequence[Move], console: Console) -> None:
    """Print the cases whose error moved between two runs, those that moved most first."""
    table = Table("moved", box=None)
    for heading in ("before: least", "e", "most", "after: least", "e", "most"):
        table.add_column(heading, justify="right")
    for move in moves[:MOST_LINES]:
        table.add_row(move.id, *_errors(move.before), *_errors(move.after))
    console.print(table)
    console.print(f"{len(moves)} cases moved, least and most as errors too")


def _errors(score: Score | None) -> tuple[str, str, str]:
    """Return least, estimate and most of *score* relative to the reading."""
    if score is None:
        return NONE, NONE, NONE
    sizes = (score.least, score.estimated, score.most)
    least, error, most = (
        percent(None if size is None else size / score.measured - 1, signed=True) for size in sizes
    )
    return least, error, most
