"""The tables of docs/accuracy.md, one function each.

scored cases, judgements, comparisons -> Markdown
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from tests.bench.accuracy.answers import NoAnswer
from tests.bench.accuracy.baselines import Comparison, Held
from tests.bench.accuracy.cases import End, Outcome
from tests.bench.accuracy.fitted import Rule
from tests.bench.accuracy.groups import Scored, Standing, Summary, standing, summary
from tests.bench.accuracy.noise import noise_floor
from tests.bench.accuracy.outcomes import Judgement, Verdict
from tests.bench.accuracy.run import Answers
from tests.bench.accuracy.tables import (
    NONE,
    Line,
    by_line,
    cell,
    markdown,
    percent,
    ratio,
)
from tests.bench.accuracy.worst import reason, worst
from tests.bench.figures import Figure

FIGURES = (
    "n",
    "no answer",
    "median \\|e\\|",
    "p90 \\|e\\|",
    "p95 \\|e\\|",
    "mean \\|e\\|",
    "p10 e",
    "median e",
    "p90 e",
    "under",
    "P(fail)",
    "below least",
    "above most",
    "most / least",
)


def figure_table(figures: Iterable[Figure]) -> str:
    """Return figures beside what is asked."""
    rows = (
        (figure.name, figure.note, figure.asked, figure.measured, _holds(figure))
        for figure in figures
    )
    return markdown(
        ("figure", "over", "asked", "reached", "holds"),
        ((cell(name), cell(note), *rest) for name, note, *rest in rows),
        words=2,
    )


def _holds(figure: Figure) -> str:
    return "yes" if figure.holds else "**no**"


def group_table(rows: Sequence[Scored]) -> str:
    """Return a line a metric, view, group and standing; held-out cases on a line of their own."""
    lines = []
    for line, members in by_line(rows):
        lines.append(_group_line(line, "all", members))
        held_out = [row for row in members if not row.is_fitted]
        if len(held_out) < len(members):
            lines.append(_group_line(line, "held out", held_out))
    return markdown(("metric", "view", "group", "standing", "rows", *FIGURES), lines, words=5)


def _group_line(line: Line, which: str, members: Sequence[Scored]) -> tuple[str, ...]:
    words = (line.metric, line.view, line.group, line.standing, which)
    return (*words, *figures_of(summary(members)))


def figures_of(found: Summary) -> tuple[str, ...]:
    """Return the columns of `FIGURES`."""
    return (
        str(found.num_cases),
        str(found.num_unanswered),
        percent(found.median_error),
        percent(found.p90_error),
        percent(found.p95_error),
        percent(found.mean_error),
        percent(found.low_error, signed=True),
        percent(found.middle_error, signed=True),
        percent(found.high_error, signed=True),
        percent(found.under),
        percent(found.failed),
        percent(found.under_least),
        percent(found.over_most),
        ratio(found.width),
    )


def in_zero(rows: Sequence[Scored]) -> str:
    """Return what readings lack because their meter's zero held it, and what that is worth."""
    scores = [
        row.score
        for row in rows
        if row.score is not None and row.score.in_zero and not row.is_fitted
    ]
    if not scores:
        return "No reading lacks anything that its meter's zero held."
    raw, whole = (
        median(abs(error) for error in errors)
        for errors in (
            [score.signed_error for score in scores],
            [score.error_of_whole for score in scores],
        )
    )
    return (
        "xmem's meter starts late: its zero already holds the CUDA context and, for convolutional "
        "networks, the model, as its code and runs that filled the card tell "
        "(`tests/bench/data/zero.yaml`). The figures asked are held against the readings as they "
        f"were published: median |e| of the {len(scores)} held out {100 * raw:.1f} %. With what "
        f"the zero held, taken from the estimate's own breakdown, it is {100 * whole:.1f} %."
    )


def gpu_table(rows: Sequence[Scored]) -> str:
    """Return a line a metric, view, group and card, of sharp cases."""
    cards: dict[tuple[str, str, str, str], list[Scored]] = {}
    for row in rows:
        if standing(row.case) is Standing.SHARP:
            reading = row.case.reading
            key = (row.case.gpu, reading.metric.value, reading.view or NONE, row.case.group)
            cards.setdefault(key, []).append(row)
    lines = []
    for (gpu, metric, view, group), members in sorted(cards.items()):
        lines.append((gpu, metric, view, group, "all", *figures_of(summary(members))))
        held_out = [row for row in members if not row.is_fitted]
        if len(held_out) < len(members):
            lines.append((gpu, metric, view, group, "held out", *figures_of(summary(held_out))))
    return markdown(("card", "metric", "view", "group", "rows", *FIGURES), lines, words=5)


def noise_table(rows: Sequence[Scored]) -> str:
    """Return the floor of each group, beside our error."""
    lines = []
    for line, members in by_line(rows):
        if line.standing != Standing.SHARP:
            continue
        floor, found = noise_floor([row.case for row in members]), summary(members)
        lines.append(
            (
                *(line.metric, line.view, line.group, floor.method),
                str(floor.num_readings),
                fine_percent(floor.median),
                fine_percent(floor.p90),
                percent(found.median_error),
                percent(found.p90_error),
            )
        )
    floors = ("readings", "median", "p90", "our median", "our p90")
    return markdown(("metric", "view", "group", "method", *floors), lines, words=4)


def fine_percent(share: float) -> str:
    """Return a small share in percent with two decimals."""
    return f"{100 * share:.2f} %"


def outcome_table(judgements: Sequence[Judgement], measured: Sequence[Judgement]) -> str:
    """Return how many jobs of each end were rejected, passed, left open or not known."""
    lines: dict[tuple[str, str, str], list[Judgement]] = {}
    for judgement in judgements:
        limit = "cap of the allocator" if judgement.is_capped else "card"
        lines.setdefault((judgement.end, limit, judgement.group), []).append(judgement)
    lines[(End.RAN, "card", "every measured case")] = list(measured)
    rows = []
    for key, members in sorted(lines.items()):
        counts = [sum(one.verdict is verdict for one in members) for verdict in Verdict]
        rows.append((*key, str(len(members)), *(str(count) for count in counts)))
    return markdown(("ended", "limit", "group", "n", *Verdict), rows, words=3)


def exceptions(judgements: Sequence[Judgement]) -> str:
    """Return every false rejection and every missed job by name."""
    rejected = sorted(one.id for one in judgements if one.is_false_rejection)
    missed = sorted(one.id for one in judgements if one.is_missed)
    return "\n".join(
        (f"* False rejections: {_named(rejected)}", f"* Missed: {_named(missed)}"),
    )


def _named(ids: Sequence[str]) -> str:
    return f"{len(ids)}: {', '.join(f'`{name}`' for name in ids)}" if ids else "none"


def comparison_table(comparisons: Iterable[Comparison]) -> str:
    """Return each tool's figures and ours on the rows both have."""
    rows = (
        (
            *(one.line.metric, one.line.view, one.line.group, one.line.standing, one.tool),
            f"{one.theirs.num_answered} of {one.num_carried}",
            *_compared(one.theirs),
            *_compared(one.ours),
        )
        for one in comparisons
    )
    figures = ("median \\|e\\|", "p90 \\|e\\|", "median e", "under")
    ours = (f"ours: {figures[0]}", *figures[1:])
    headings = ("metric", "view", "group", "standing", "tool", "n", *figures, *ours)
    return markdown(headings, rows, words=5)


def _compared(found: Summary) -> tuple[str, ...]:
    return (
        percent(found.median_error),
        percent(found.p90_error),
        percent(found.middle_error, signed=True),
        percent(found.under),
    )


def held_table(held: Iterable[Held]) -> str:
    """Return how many capped runs died, by the tool that set the cap."""
    rows = ((one.tool, str(one.num_runs), str(one.num_died)) for one in held)
    return markdown(("tool", "runs under its estimate", "died"), rows)


def worst_table(rows: Sequence[Scored], answers: Answers, notes: Mapping[str, str]) -> str:
    """Return the worst cases with their reason."""
    lines = []
    for row in worst(rows):
        assert row.score is not None
        lines.append(
            (
                f"`{row.case.id}`",
                row.case.reading.metric.value,
                cell(reason(row, answers, notes)),
                *(f"{size:,}" for size in (row.score.measured, row.score.estimated)),
                percent(row.score.signed_error, signed=True),
            )
        )
    headings = ("case", "metric", "reason", "measured, bytes", "estimated, bytes", "e")
    return markdown(headings, lines, words=3)


def fitted_table(rules: Sequence[Rule], num_fitted: Sequence[int]) -> str:
    """Return each constant with the cases it was fitted on."""
    rows = (
        (
            cell(rule.constant),
            f"`{rule.where}`",
            rule.group,
            cell(rule.words),
            cell(rule.tested),
            str(count),
        )
        for rule, count in zip(rules, num_fitted, strict=True)
    )
    return markdown(("constant", "file", "group", "rows", "tested on", "n"), rows, words=5)


def no_answer_table(rows: Sequence[Scored], outcomes: Sequence[Outcome], answers: Answers) -> str:
    """Return the reasons cases have no answer, by group, the first case of each named."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    groups = {row.case.id: row.case.group for row in rows}
    groups |= {outcome.id: f"{outcome.group}, known outcome" for outcome in outcomes}
    for name in sorted(groups):
        answer = answers[name]
        if isinstance(answer, NoAnswer):
            first = answer.message.splitlines()[0][:160]
            reasons.setdefault((groups[name], answer.kind, first), []).append(name)
    lines = (
        (group, cell(kind), cell(message), f"`{names[0]}`", str(len(names)))
        for (group, kind, message), names in sorted(reasons.items())
    )
    return markdown(("group", "kind", "reason", "first case", "n"), lines, words=4)
