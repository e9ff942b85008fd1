"""The full run: every case asked, scored, and written down.

cases -> answers -> Results -> docs/accuracy.md
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from estimator.spec import Framework
from estimator.workers.pool import Workers
from tests.bench.accuracy.answers import Answer
from tests.bench.accuracy.article import article_questions
from tests.bench.accuracy.article import entries as article_entries
from tests.bench.accuracy.cases import Case, Outcome, read_cases, read_outcomes
from tests.bench.accuracy.fitted import fitted_ids, read_rules
from tests.bench.accuracy.groups import scored
from tests.bench.accuracy.outcomes import judged, measured_as_ran
from tests.bench.accuracy.report import Results, report
from tests.bench.accuracy.resident import ForkWatch, templates_resident
from tests.bench.accuracy.run import CONCURRENT, Answers, Question, answers_to, questions_of
from tests.bench.accuracy.targets import Cost, accuracy_figures, cost_figures
from tests.bench.accuracy.worst import read_notes
from tests.bench.figures import hardware

PAGE = Path(__file__).parents[3] / "docs" / "accuracy.md"
TIMED_GROUP = "timm-a100"
HEARD_EVERY = 50
IDLE_LOOKS, IDLE_SECONDS = 500, 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Answers, and what the processes held while they were found."""

    answers: Answers
    fork_bytes: int | None
    templates_bytes: int | None


async def ask(
    asking: Sequence[Case | Outcome], console: Console, *, more: Sequence[Question] = ()
) -> Measured:
    """Return the answers to *asking* and *more*, two at a time; the console hears how far it is."""
    questions = [*questions_of(asking), *more]
    workers = Workers(max_concurrent=CONCURRENT, preload=(Framework.PYTORCH,))
    await workers.start()
    await workers.ready(Framework.PYTORCH)
    watch = ForkWatch(workers)
    watching = asyncio.create_task(watch.watch())

    def heard(count: int) -> None:
        if count % HEARD_EVERY == 0:
            console.print(f"{count} of {len(questions)} estimates")

    try:
        answers = await answers_to(questions, workers, heard=heard)
        await _idle(workers)
        return Measured(
            answers=answers,
            fork_bytes=watch.largest_fork(),
            templates_bytes=templates_resident(workers),
        )
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await workers.close()


async def _idle(workers: Workers) -> None:
    """Wait until no fork runs: one ends a little after its answer."""
    for _ in range(IDLE_LOOKS):
        if not workers.states()["busy"]:
            return
        await asyncio.sleep(IDLE_SECONDS)


async def measure_all(console: Console, *, since: float, part: str) -> Results:
    """Ask everything, write docs/accuracy.md and return what is in it.

    *since* is when the clock was read at the start of what is timed, *part* says what that is.
    """
    cases, outcomes = read_cases(), read_outcomes()
    measured = await ask((*cases, *outcomes), console, more=article_questions(article_entries()))
    minutes = (time.perf_counter() - since) / 60
    found = results(cases, outcomes, measured, minutes=minutes, part=part)
    PAGE.write_text(report(found), "utf-8")
    return found


def results(
    cases: Sequence[Case],
    outcomes: Sequence[Outcome],
    measured: Measured,
    *,
    minutes: float,
    part: str,
) -> Results:
    """Return everything the report is made of."""
    answers, rules = measured.answers, read_rules()
    rows = scored(cases, answers, fitted_ids(rules, cases))
    judgements, ran = judged(outcomes, answers), measured_as_ran(cases, answers)
    timed = (answers[case.id] for case in cases if case.group == TIMED_GROUP)
    cost = Cost(
        minutes=minutes,
        part=part,
        timm_seconds=tuple(one.seconds for one in timed if isinstance(one, Answer)),
        fork_bytes=measured.fork_bytes,
        templates_bytes=measured.templates_bytes,
    )
    return Results(
        machine=hardware(),
        rows=tuple(rows),
        answers=answers,
        outcomes=tuple(outcomes),
        judgements=tuple(judgements),
        measured=tuple(ran),
        rules=rules,
        num_fitted=tuple(len(rule.takes(cases)) for rule in rules),
        notes=read_notes(),
        accuracy=tuple(accuracy_figures(rows, [*judgements, *ran])),
        cost=tuple(cost_figures(cost)),
    )
