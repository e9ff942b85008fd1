"""What is asked of the estimates, and what they reach.

    scored cases, judgements, timings -> Figures

A group's figure is over the cases no constant was fitted on, sharp ones only; where all were, it
is over all of them and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from estimator.units import GIB, MIB
from tests.bench.accuracy.groups import (
    Scored,
    Standing,
    Summary,
    quantile,
    standing,
    summary,
)
from tests.bench.accuracy.outcomes import Judgement
from tests.bench.figures import Figure

MEDIAN_PERCENT = 3.0
LOOSER_PERCENT = {"soup": 5.0, "torchtune": 5.0, "torchtitan": 5.0}
"""Groups of which less is asked."""
GROUPS = (
    "timm-a100",
    "gpumemnet",
    "xmem",
    "hf-infer",
    "hf-train",
    "schedtune",
    "mlp-a100",
    "peft",
    "litgpt",
    "soup",
    "torchtune",
    "torchtitan",
)
P90_PERCENT = {"timm-a100": 12.0}
FAILED_PERCENT = 2.0
COVERED_PERCENT = 98.0
WIDTH = 1.35
BENCH_MINUTES = 15.0
TIMM_P95_SECONDS = 5.0
FORK_MIB = 256.0
TEMPLATES_GIB = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the run itself took."""

    minutes: float
    part: str
    """What the minutes are of."""
    timm_seconds: tuple[float, ...]
    """Of each estimate of a timm-a100 case."""
    fork_bytes: int | None
    templates_bytes: int | None


def accuracy_figures(rows: Sequence[Scored], judgements: Sequence[Judgement]) -> list[Figure]:
    """Return what is asked of the errors, the intervals and the outcomes."""
    figures = [_median(rows, group) for group in GROUPS]
    figures += [_p90(rows, group, high) for group, high in P90_PERCENT.items()]
    answered = [row for row in rows if row.score is not None]
    held_out = [row for row in _sharp(answered) if not row.is_fitted]
    failed, covered = summary(answered).failed, _covered(summary(held_out))
    widths = [row.score.width for row in answered if row.score and row.score.width is not None]
    return [
        *figures,
        Figure(
            name="P(fail)",
            value=_percent(failed),
            unit="%",
            high=FAILED_PERCENT,
            note=f"all {len(answered)} cases with an answer, banded and unexpressed ones too",
        ),
        Figure(
            name="coverage of [least, most]",
            value=_percent(covered),
            unit="%",
            low=COVERED_PERCENT,
            high=math.inf,
            note=f"{len(held_out)} held-out sharp cases",
        ),
        Figure(
            name="median most / least",
            value=median(widths) if widths else math.nan,
            unit="x",
            high=WIDTH,
            note=f"{len(widths)} cases with a `least` of their metric",
        ),
        Figure(
            name="`ran` with `least` above its limit",
            value=sum(judgement.is_false_rejection for judgement in judgements),
            unit="",
            high=0,
            note="jobs of known outcome and every measured case on its card",
        ),
    ]


def cost_figures(cost: Cost) -> list[Figure]:
    """Return what is asked of the time and memory of the run."""
    seconds = sorted(cost.timm_seconds)
    return [
        Figure(name="time", value=cost.minutes, unit="min", high=BENCH_MINUTES, note=cost.part),
        Figure(
            name="timm-a100 estimate, p95",
            value=quantile(seconds, 0.95) if seconds else math.nan,
            unit="s",
            high=TIMM_P95_SECONDS,
            note="two at a time",
        ),
        Figure(
            name="a fork's private memory, largest seen",
            value=math.nan if cost.fork_bytes is None else cost.fork_bytes / MIB,
            unit="MiB",
            high=FORK_MIB,
            note="looked at every 500 ms",
        ),
        Figure(
            name="processes that wait for forks, resident",
            value=math.nan if cost.templates_bytes is None else cost.templates_bytes / GIB,
            unit="GiB",
            high=TEMPLATES_GIB,
            note="after the run",
        ),
    ]


def quoted(rows: Sequence[Scored], group: str) -> tuple[list[Scored], str]:
    """Return the cases a figure of *group* is quoted over, and which they are."""
    sharp = _sharp([row for row in rows if row.case.group == group])
    held_out = [row for row in sharp if not row.is_fitted]
    chosen = held_out or sharp
    if not chosen:
        return [], "no case"
    answered = sum(row.score is not None for row in chosen)
    which = "held-out" if held_out else "all cases, a constant was fitted on each"
    return chosen, f"{which}, {answered} of {len(chosen)} answered"


def _median(rows: Sequence[Scored], group: str) -> Figure:
    chosen, note = quoted(rows, group)
    value = _percent(summary(chosen).median_error)
    return Figure(
        name=f"{group}, median |error|",
        value=value,
        unit="%",
        high=LOOSER_PERCENT.get(group, MEDIAN_PERCENT),
        note=note,
    )


def _p90(rows: Sequence[Scored], group: str, high: float) -> Figure:
    chosen, note = quoted(rows, group)
    value = _percent(summary(chosen).p90_error)
    return Figure(name=f"{group}, p90 |error|", value=value, unit="%", high=high, note=note)


def _sharp(rows: Sequence[Scored]) -> list[Scored]:
    return [row for row in rows if standing(row.case) is Standing.SHARP]


def _covered(figures: Summary) -> float | None:
    return None if figures.failed is None else 1 - figures.failed


def _percent(share: float | None) -> float:
    return math.nan if share is None else 100 * share
