"""Score some cases on the screen, or all of them into docs/accuracy.md.

Without --group, --ids, --limit and --answers every case is estimated and docs/accuracy.md is
written; exit 1 if a figure asked is not reached. Otherwise the cases are shown and nothing but
--json is written.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tests.bench.accuracy.cases import Case, read_cases
from tests.bench.accuracy.fitted import fitted_ids, read_rules
from tests.bench.accuracy.full import ask, measure_all
from tests.bench.accuracy.groups import scored
from tests.bench.accuracy.records import moves, read_answers, write_rows
from tests.bench.accuracy.run import Answers
from tests.bench.accuracy.screen import show, show_moves
from tests.bench.accuracy.selection import select
from tests.bench.figures import console, figure_table


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.accuracy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--group", nargs="+", default=[], help="only cases of these groups")
    parser.add_argument("--ids", nargs="+", default=[], help="only cases with this in their id")
    parser.add_argument("--limit", type=int, help="at most so many, evenly spread")
    parser.add_argument("--json", type=Path, help="write a row a case, for a diff")
    parser.add_argument("--answers", type=Path, help="score rows written before, ask nothing")
    parser.add_argument("--against", type=Path, help="rows written before: show what moved")
    return parser.parse_args()


async def _run(arguments: argparse.Namespace) -> int:
    screen = console()
    # A worker that fails is an answer's reason here; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    if arguments.group or arguments.ids or arguments.limit or arguments.answers:
        await _partial(arguments, screen)
        return 0
    found = await measure_all(screen, since=time.perf_counter(), part="accuracy alone")
    if arguments.json:
        write_rows(arguments.json, found.answers, found.rows)
    if arguments.against:
        _show_moves(arguments.against, [row.case for row in found.rows], found.answers, screen)
    screen.print(figure_table(found.figures))
    return 0 if all(figure.holds for figure in found.figures) else 1


async def _partial(arguments: argparse.Namespace, screen: Console) -> None:
    """Show the cases asked for."""
    every = read_cases()
    cases = select(every, groups=arguments.group, ids=arguments.ids, limit=arguments.limit)
    if arguments.answers:
        answers = read_answers(arguments.answers)
        cases = tuple(case for case in cases if case.id in answers)
    else:
        answers = (await ask(cases, screen)).answers
    rows = scored(cases, answers, fitted_ids(read_rules(), every))
    show(rows, answers, screen)
    if arguments.against:
        _show_moves(arguments.against, cases, answers, screen)
    if arguments.json:
        write_rows(arguments.json, answers, rows)


def _show_moves(path: Path, cases: Sequence[Case], answers: Answers, screen: Console) -> None:
    before = read_answers(path)
    known = [case for case in cases if case.id in before]
    none: frozenset[str] = frozenset()
    show_moves(moves(scored(known, before, none), scored(known, answers, none)), screen)


if __name__ == "__main__":
    sys.exit(asyncio.run(_run(_arguments())))
