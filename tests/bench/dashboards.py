"""How long every query of the dashboards takes on a week of a cluster, asked as Grafana asks.

    a made-up week in a real Prometheus -> processor time of each query

    python -m tests.bench.dashboards            (some minutes; a part of `make soak`)
    python -m tests.bench.dashboards --all      (every query, not the slowest only)

Processor time of Prometheus says the same on a busy machine, as a wait does not; waits are shown
beside it. How Grafana chooses steps: grafana/grafana pkg/promlib/models/query.go and intervalv2
(1e15b80): span by points, rounded, and a minute more for rates.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from tests.bench.figures import Figure, console, figure_table, machine, used_seconds
from tests.e2e.prometheus.week.archive import Archive, archive
from tests.e2e.prometheus.week.cluster import SEED
from tests.monitoring.asked import Asked, asked, boards, spanned

MOST_MS = 200.0
TRIES = 3
SHOWN = 12
SCRAPE = 60
DAY = 86_400
STEPS = {DAY: 300, 7 * DAY: 1800, 30 * DAY: 7200}
"""Seconds that are shown, and Grafana's step of a line of 300 points."""
SPANS = {"now-24h": DAY, "now-7d": 7 * DAY, "1d": DAY, "30d": 30 * DAY}
CHOSEN = {"namespace": "default", "workload": "train-6"}
"""On the dashboard of a job: pods of the last days begin with its name. Everything elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one query took, at best."""

    query: Asked
    seconds: int
    """That were shown."""
    used_ms: float
    waited_ms: float
    num_series: int


def spans(query: Asked) -> tuple[int, ...]:
    """Return the seconds that *query* is asked over: its own, or its dashboard's and a week."""
    if query.span:
        return (SPANS[query.span],)
    default = SPANS[boards()[query.board]["time"]["from"]]
    return tuple(sorted({default, 7 * DAY}))


def measured(server: Archive) -> Iterator[Taken]:
    """Yield what every query takes over each of its spans."""
    for query in asked():
        for seconds in spans(query):
            yield _taken(server, query, seconds)


def _taken(server: Archive, query: Asked, seconds: int) -> Taken:
    step = STEPS[seconds]
    expr = spanned(query.expr, span=f"{seconds}s", rate=f"{step + SCRAPE}s", **CHOSEN)
    found = []
    for _ in range(TRIES):
        before = used_seconds(server.pid)
        answer = (
            server.instant(expr)
            if query.is_instant
            else server.line(expr, seconds=seconds, step=step)
        )
        used = used_seconds(server.pid) - before
        found.append((used, answer.seconds))
    return Taken(
        query=query,
        seconds=seconds,
        used_ms=1000 * min(used for used, _ in found),
        waited_ms=1000 * min(waited for _, waited in found),
        num_series=answer.num_series,
    )


def figures_of(taken: list[Taken]) -> Iterator[Figure]:
    """Yield the slowest query, and how many brought nothing."""
    slowest = max(taken, key=lambda each: each.used_ms)
    yield Figure(
        name="a dashboard's query on a week, of a processor, the slowest",
        value=slowest.used_ms,
        unit="ms",
        high=MOST_MS,
        note=f"{len(taken)} queries; {slowest.query.name}, {slowest.seconds // DAY} days",
    )
    empty = [each for each in taken if not each.num_series]
    yield Figure(
        name="a dashboard's queries without an answer on a week",
        value=len(empty),
        unit="",
        high=0,
        note=", ".join(sorted({each.query.name for each in empty})[:3]),
    )


def query_table(taken: list[Taken]) -> Table:
    """Return *taken* as a table for the screen."""
    table = Table("query", "days", "processor, ms", "waited, ms", "series")
    for each in taken:
        row = (each.query.name, str(each.seconds // DAY))
        table.add_row(*row, f"{each.used_ms:.0f}", f"{each.waited_ms:.0f}", str(each.num_series))
    return table


def main(argv: list[str] | None = None) -> int:
    """Make the week, ask everything, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="show every query")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(argv)
    screen = console()
    screen.print(machine(), soft_wrap=True)
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="vramgate-week-") as name,
        archive(Path(name), seed=options.seed) as server,
    ):
        screen.print(f"a week was made in {time.monotonic() - began:.0f} s")
        taken = sorted(measured(server), key=lambda each: -each.used_ms)
    screen.print(query_table(taken if options.all else taken[:SHOWN]))
    figures = list(figures_of(taken))
    screen.print(figure_table(figures))
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
