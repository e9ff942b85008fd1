"""Other tools' figures on the very same rows as ours.

    scored cases, answers -> Comparisons

The tools' estimates come with the cases, as their authors or re-runs of them published them. Two
plain sums are computed here from the trace's own breakdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from estimator.baselines import live_tensor_bytes, shape_inference_bytes
from tests.bench.accuracy.answers import Answer
from tests.bench.accuracy.cases import Case, End, Outcome
from tests.bench.accuracy.groups import Scored, Standing, Summary, standing, summary
from tests.bench.accuracy.run import Answers
from tests.bench.accuracy.tables import Line, by_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A tool's figures and ours over the rows that both have an answer for."""

    line: Line
    tool: str
    num_carried: int
    """How many rows carry the tool's estimate, ours or not."""
    theirs: Summary
    ours: Summary


def compared(rows: Sequence[Scored]) -> list[Comparison]:
    """Return each tool, on each line of cases that carry its estimate."""
    found = []
    for line, members in by_line(rows):
        for tool in sorted({tool for row in members for tool in row.case.baselines}):
            carried = [row for row in members if tool in row.case.baselines]
            both = [row for row in carried if row.score is not None]
            figures = {row.case.id: row.case.baselines[tool] for row in both}
            found.append(_comparison(line, tool, both, figures, num_carried=len(carried)))
    return found


def sums(rows: Sequence[Scored], answers: Answers) -> list[Comparison]:
    """Return the plain sums on each line of sharp cases that have an answer."""
    found = []
    sharp = [row for row in rows if standing(row.case) is Standing.SHARP]
    for line, members in by_line(sharp):
        both = [row for row in members if row.score is not None]
        if not both:
            continue
        for name, plain in SUMS.items():
            figures = {row.case.id: plain(row.case, _answer(answers, row)) for row in both}
            found.append(_comparison(line, name, both, figures, num_carried=len(members)))
    return found


def tensor_sum(case: Case, answer: Answer) -> int:
    """Return the bytes of all tensors alive at the peak: allocated without library scratch."""
    assert answer.peak.allocated is not None
    return live_tensor_bytes(answer.breakdown, allocated=answer.peak.allocated)


def shape_sum(case: Case, answer: Answer) -> int:
    """Return what shapes alone tell of the job."""
    return shape_inference_bytes(
        answer.breakdown,
        is_training=case.spec.get("phase") != "infer",
        trains_all="adapter" not in case.spec and "quantization" not in case.spec,
    )


SUMS: Mapping[str, Callable[[Case, Answer], int]] = {
    "sum of live tensors": tensor_sum,
    "shape inference": shape_sum,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A tool whose estimate was set as the cap of a second run."""

    tool: str
    num_runs: int
    num_died: int


def held_to_estimates(outcomes: Iterable[Outcome]) -> list[Held]:
    """Return how many runs died when held to a tool's estimate (`…-cap47-xmem` in the id)."""
    ends: dict[str, list[End]] = {}
    for outcome in outcomes:
        match = re.search(r"-cap\d+-(\w+)$", outcome.id)
        if match is not None:
            ends.setdefault(match[1], []).append(outcome.end)
    return [
        Held(tool=tool, num_runs=len(known), num_died=known.count(End.OOM))
        for tool, known in sorted(ends.items())
    ]


def _comparison(
    line: Line, tool: str, both: Sequence[Scored], figures: Mapping[str, int], *, num_carried: int
) -> Comparison:
    theirs = [
        replace(row, score=replace(row.score, estimated=figures[row.case.id]))
        for row in both
        if row.score is not None
    ]
    return Comparison(
        line=line,
        tool=tool,
        num_carried=num_carried,
        theirs=summary(theirs),
        ours=summary(both),
    )


def _answer(answers: Answers, row: Scored) -> Answer:
    answer = answers[row.case.id]
    assert isinstance(answer, Answer)
    return answer
