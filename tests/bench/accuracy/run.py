"""Ask the estimator every question once, two at a time, in worker processes.

    questions -> Workers -> answers

A question without an answer has the reason. Questions that differ in their id only are asked once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from estimator.catalog import resolve_device
from estimator.errors import EstimatorError
from estimator.spec import parse_spec
from estimator.workers.api import Estimator
from tests.bench.accuracy.answers import Answer, NoAnswer, answer_of, no_answer_of
from tests.bench.accuracy.cases import Case, Outcome

CONCURRENT = 2

Answers = Mapping[str, Answer | NoAnswer]
"""By the id of the case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A job and a card, and the cases that ask about them."""

    spec: Mapping[str, Any]
    gpu: str
    ids: tuple[str, ...]


def questions_of(asking: Sequence[Case | Outcome]) -> list[Question]:
    """Return each distinct question once, language models first: theirs take longest."""
    ids: dict[bytes, list[str]] = {}
    first: dict[bytes, Case | Outcome] = {}
    for case in asking:
        key = orjson.dumps([case.gpu, case.spec], option=orjson.OPT_SORT_KEYS)
        first.setdefault(key, case)
        ids.setdefault(key, []).append(case.id)
    questions = [
        Question(spec=case.spec, gpu=case.gpu, ids=tuple(ids[key])) for key, case in first.items()
    ]
    return sorted(questions, key=lambda question: (_is_quick(question), question.ids))


def _is_quick(question: Question) -> bool:
    return question.spec.get("model", {}).get("source") not in ("huggingface", "diffusers")


async def answers_to(
    questions: Sequence[Question],
    estimator: Estimator,
    *,
    heard: Callable[[int], None],
) -> Answers:
    """Return the answer to each case of *questions*; *heard* is told how many are done."""
    answers: dict[str, Answer | NoAnswer] = {}
    waiting = iter(questions)
    num_done = 0

    async def work() -> None:
        nonlocal num_done
        for question in waiting:
            answer = await _answer(question, estimator)
            answers.update(dict.fromkeys(question.ids, answer))
            num_done += 1
            heard(num_done)

    await asyncio.gather(*(work() for _ in range(CONCURRENT)))
    return answers


async def _answer(question: Question, estimator: Estimator) -> Answer | NoAnswer:
    try:
        job, card = parse_spec(dict(question.spec)), resolve_device(question.gpu)
        (estimate,) = await estimator.estimate(job, [card])
    except EstimatorError as error:
        return no_answer_of(error)
    return answer_of(estimate)
