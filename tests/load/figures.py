"""What a run found, beside what has to hold.

Outcome -> Figures, lines for a person
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tests.bench.figures import Figure
from tests.load.answering import FAILED
from tests.load.running import Outcome, exceeding

MOST_SLOPE = 5.0
"""MiB of `serve` for each 100,000 reviews once its caches are full."""
MOST_TEMPLATE_GROWTH = 16.0
"""MiB. A template that forks does nothing else."""
SLOPE_REVIEWS = 50_000
"""Of fewer reviews the slope is printed and not judged: caches are still filling."""
FAILED_EACH_KILL = 2
"""Specs that may fail for one process that was killed: so many workers are there at once."""
INFINITE = math.inf


def figures(outcome: Outcome) -> Iterator[Figure]:
    """Yield every figure of *outcome*."""
    yield from _answers(outcome)
    yield from _speed(outcome)
    yield from _resources(outcome)


def lines(outcome: Outcome) -> Iterator[str]:
    """Yield what was counted, and what is wrong in words."""
    judge, scene = outcome.judge, outcome.scene
    yield f"seed {outcome.plan.seed}"
    for name, number in sorted(judge.kinds.items()):
        yield f"answered {name}: {number}"
    for name, number in sorted(scene.injected.items()):
        yield f"injected {name}: {number}"
    for name, number in sorted(outcome.compared.items()):
        yield f"unseen specs compared afterwards, {name}: {number}"
    yield f"held before: {outcome.before}"
    yield f"held after: {outcome.after}"
    yield f"largest worker: {outcome.memory.largest_worker:.0f} MiB of its own"
    for text in (*judge.wrong, *outcome.sender.broken[:5], *scene.missed, *outcome.errors[:5]):
        yield f"WRONG {text}"


def _answers(outcome: Outcome) -> Iterator[Figure]:
    sender, judge, scene = outcome.sender, outcome.judge, outcome.scene
    answered = sender.num_answered
    yield _at_least("reviews answered", answered, outcome.plan.reviews)
    yield _none("reviews without an answer", sender.num_lost)
    yield _none("answers with another uid", judge.num_other_uid)
    yield _none("wrong answers", judge.num_wrong)
    others = sum(count for status, count in judge.statuses.items() if status != 200)
    yield _none("answers with a status other than 200", others)
    late = sum(seconds >= outcome.plan.timeout_seconds for seconds in sender.seconds)
    yield _none(f"answers after {outcome.plan.timeout_seconds} s or more", late)
    yield Figure(
        name="reviews the server counts beyond those that were answered",
        value=outcome.counted - judge.num_counted,
        unit="",
        high=scene.num_left,
        note=f"{scene.num_left} clients left before their answer",
    )
    kills = scene.injected["worker_killed"] + scene.injected["template_killed"]
    yield Figure(
        name="specs that a worker failed",
        value=len(judge.failed),
        unit="",
        high=FAILED_EACH_KILL * kills,
        note=f"{kills} processes killed, {judge.kinds[FAILED]} answers say so",
    )
    yield _none("unseen specs answered otherwise than here", outcome.compared["another answer"])
    yield _none("faults that led to something else", len(scene.missed))


def _speed(outcome: Outcome) -> Iterator[Figure]:
    rate = outcome.sender.num_answered / outcome.seconds
    asked = f"{outcome.plan.rate:g} a second were meant"
    yield Figure(name="reviews a second", value=rate, unit="/s", high=INFINITE, note=asked)
    for name, seconds in zip(("serve", "the clients"), outcome.used, strict=True):
        each = 1000 * seconds / outcome.sender.num_answered
        yield Figure(name=f"of a processor, {name}, a review", value=each, unit="ms", high=INFINITE)
    percentiles = np.percentile(np.asarray(outcome.sender.seconds), (50, 90, 99, 99.9, 100))
    for name, value in zip(("p50", "p90", "p99", "p99.9", "longest"), percentiles, strict=True):
        yield Figure(name=f"answer, {name}", value=1000 * value, unit="ms", high=INFINITE)


def _resources(outcome: Outcome) -> Iterator[Figure]:
    memory = outcome.memory
    is_judged = outcome.plan.reviews >= SLOPE_REVIEWS
    yield Figure(
        name="serve grows, each 100,000 reviews",
        value=max(0.0, memory.slope),
        unit="MiB",
        high=MOST_SLOPE if is_judged else INFINITE,
        note=f"{memory.samples[0].serve:.0f} MiB at first, {memory.samples[-1].serve:.0f} at last"
        + ("" if is_judged else "; too few reviews to judge"),
    )
    yield Figure(
        name="templates, second half over first",
        value=max(0.0, memory.template_growth),
        unit="MiB",
        high=MOST_TEMPLATE_GROWTH if is_judged else INFINITE,
    )
    more = exceeding(outcome.after, outcome.before)
    yield Figure(
        name="kinds of what is left open", value=len(more), unit="", high=0, note="; ".join(more)
    )
    yield _none("processes that outlive the server", outcome.left_behind)
    yield _none("exit status of the server", abs(outcome.status))
    yield _none("tracebacks in its log", outcome.tracebacks)
    yield _none("errors in its log", len(outcome.errors))


def _none(name: str, value: int) -> Figure:
    return Figure(name=name, value=value, unit="", high=0)


def _at_least(name: str, value: int, low: int) -> Figure:
    return Figure(name=name, value=value, unit="", low=low, high=INFINITE)
