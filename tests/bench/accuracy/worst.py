"""The cases farthest from their reading, each with what is known of why.

    scored cases, answers, notes -> the worst with reasons

A reason is read off the case and the estimate; one found by hand (data/notes.yaml) comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from estimator.catalog.stacks import stack_of
from tests.bench.accuracy.answers import Answer
from tests.bench.accuracy.cases import DATA, Case, Quality
from tests.bench.accuracy.groups import Scored
from tests.bench.accuracy.run import Answers

HOW_MANY = 20

RESTS_ON: Mapping[str, str] = {
    "kernel-workspace": "workspace",
    "context": "context",
    "libraries": "libraries",
    "allocator": "cached",
}
"""Which part of a breakdown an assumption of this code is about."""
CONVOLUTION_SCRATCH = "kernel-workspace runtime.cudnn: "
"""How the assumption about convolutions begins."""


def read_notes(path: Path = DATA / "notes.yaml") -> Mapping[str, str]:
    """Return the reasons found by hand, by case."""
    notes: dict[str, str] = yaml.safe_load(path.read_text("utf-8")) or {}
    return notes


def worst(rows: Sequence[Scored]) -> list[Scored]:
    """Return the rows farthest from their reading, the farthest first."""
    answered = [row for row in rows if row.score is not None]
    return sorted(answered, key=_badness)[:HOW_MANY]


def _badness(row: Scored) -> tuple[float, str]:
    assert row.score is not None
    return (-abs(row.score.signed_error), row.case.id)


def reason(row: Scored, answers: Answers, notes: Mapping[str, str]) -> str:
    """Return why the estimate of *row* may be as far off as it is."""
    case, answer = row.case, answers[row.case.id]
    assert row.score is not None
    assert isinstance(answer, Answer)
    found = [notes[case.id]] if case.id in notes else []
    if case.unexpressed:
        found.append(f"the spec cannot say: {', '.join(case.unexpressed)}")
    if case.quality is Quality.BANDED:
        found.append("banded: shapes vary in the run, or the meter or the card is a guess")
    if answer.method == "formula":
        found.append("estimated by formula")
    if answer.unknown:
        found.append(f"not modelled: {', '.join(sorted(set(answer.unknown)))}")
    if case.spec.get("runtime", {}).get("cudnnBenchmark"):
        found.append("cudnn.benchmark chose the convolutions while the job ran")
    elif answer.breakdown["workspace"] and has_old_cudnn(case):
        found.append("its cuDNN is older than any that can be asked")
    elif scratch := _scratch(answer):
        found.append(f"scratch of its convolutions is {scratch}")
    if case.id not in notes:
        found.append(_assumed_part(answer, error=abs(row.score.estimated - row.score.measured)))
    return "; ".join(text for text in found if text) or "not explained"


def has_old_cudnn(case: Case) -> bool:
    """Return whether the job's release has a cuDNN that no wheel of today holds."""
    stack = stack_of(case.spec.get("frameworkVersion"))
    return stack is not None and stack.cudnn is None


def _scratch(answer: Answer) -> str:
    """Return how the scratch of convolutions was found, where that was assumed."""
    notes = (text.partition(CONVOLUTION_SCRATCH)[2] for text in answer.assumed)
    return next((value for value in notes if value), "")


def _assumed_part(answer: Answer, *, error: int) -> str:
    """Return the largest part that rests on an assumption, if it could be most of *error*."""
    codes = {text.partition(" ")[0] for text in answer.assumed}
    parts = {answer.breakdown[part]: part for code, part in RESTS_ON.items() if code in codes}
    largest = max(parts, default=0)
    if 2 * largest < error or not largest:
        return ""
    share = 100 * largest / answer.peak.device
    return f"{parts[largest]}, assumed, is {share:.0f} % of the estimate"
