"""docs/accuracy.md.

    Results -> Markdown

The same answers give the same text, but for the table on time and memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from tests.bench.accuracy import sections
from tests.bench.accuracy.article import article_table
from tests.bench.accuracy.article import entries as article_entries
from tests.bench.accuracy.baselines import compared, held_to_estimates, sums
from tests.bench.accuracy.cases import Outcome
from tests.bench.accuracy.fitted import Rule
from tests.bench.accuracy.groups import Scored
from tests.bench.accuracy.outcomes import Judgement
from tests.bench.accuracy.run import Answers
from tests.bench.figures import Figure

PAGE = Path(__file__).with_name("page.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything the report is made of."""

    machine: str
    rows: tuple[Scored, ...]
    answers: Answers
    outcomes: tuple[Outcome, ...]
    judgements: tuple[Judgement, ...]
    """Of the jobs of known outcome."""
    measured: tuple[Judgement, ...]
    """Of the measured cases, each of which ran on its card."""
    rules: tuple[Rule, ...]
    num_fitted: tuple[int, ...]
    """Cases each rule takes."""
    notes: Mapping[str, str]
    accuracy: tuple[Figure, ...]
    cost: tuple[Figure, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Return everything that is asked."""
        return (*self.accuracy, *self.cost)


def report(results: Results) -> str:
    """Return the whole page: the sentences of page.md with the tables in their places."""
    rows, answers = results.rows, results.answers
    page = Template(PAGE.read_text("utf-8"))
    return page.substitute(
        machine=results.machine,
        num_cases=len(rows),
        num_outcomes=len(results.outcomes),
        accuracy=sections.figure_table(results.accuracy),
        cost=sections.figure_table(results.cost),
        in_zero=sections.in_zero(rows),
        groups=sections.group_table(rows),
        cards=sections.gpu_table(rows),
        noise=sections.noise_table(rows),
        outcomes=sections.outcome_table(results.judgements, results.measured),
        exceptions=sections.exceptions((*results.judgements, *results.measured)),
        tools=sections.comparison_table(compared(rows)),
        sums=sections.comparison_table(sums(rows, answers)),
        article=article_table(article_entries(), answers, rows),
        held=sections.held_table(held_to_estimates(results.outcomes)),
        worst=sections.worst_table(rows, answers, results.notes),
        fitted=sections.fitted_table(results.rules, results.num_fitted),
        no_answer=sections.no_answer_table(rows, results.outcomes, answers),
    )
