"""What travels between a fork and the cuDNN process.

    Card, Questions -> batch -> Answers | reasons

Frames of JSON. A connection begins with the library's greeting; then each batch gets its answers
before the next is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson

from estimator.cudnn.cards import Card
from estimator.cudnn.checks import QuestionError, card_in
from estimator.cudnn.questions import Answer, Plan, Question
from estimator.cudnn.support import Release

MAX_BATCH = 16
"""Questions answered before another fork has its turn: about 20 ms."""
MAX_REQUEST = 1 << 16
MAX_RESPONSE = 1 << 20


class WireError(Exception):
    """The other side sent something else."""


def encode_greeting(release: Release) -> bytes:
    """Return *release* as JSON."""
    return orjson.dumps(asdict(release))


def decode_greeting(payload: bytes) -> Release:
    """Return the release in *payload*.

    Raises:
        WireError: if there is none.
    """
    match _json(payload):
        case {"version": int(version), "cuda": int(cuda)}:
            return Release(version=version, cuda=cuda)
    raise WireError("no greeting")


def encode_batch(card: Card, questions: Sequence[Question]) -> bytes:
    """Return *questions* about *card* as JSON."""
    return orjson.dumps({"card": card, "questions": list(questions)})


def decode_batch(payload: bytes) -> tuple[Card, list[Any]]:
    """Return the card and the unread questions in *payload*.

    Raises:
        WireError: if it is no batch.
    """
    match _json(payload):
        case {"card": card, "questions": list(questions)} if len(questions) <= MAX_BATCH:
            try:
                return card_in(card), questions
            except QuestionError as error:
                raise WireError(str(error)) from error
    raise WireError("no batch")


def encode_key(card: Card, question: Question) -> bytes:
    """Return what tells one question about one card from all others."""
    return orjson.dumps([card, question])


def encode_answer(answer: Answer) -> bytes:
    """Return *answer* as JSON, plans as triples."""
    return orjson.dumps(
        {"instant": _triples(answer.instant), "fallback": _triples(answer.fallback)}
    )


def encode_refusal(reason: str) -> bytes:
    """Return as JSON that there is no answer, and why."""
    return orjson.dumps({"refused": reason})


def encode_answers(answers: Sequence[bytes]) -> bytes:
    """Return encoded *answers* as one JSON."""
    return orjson.dumps([orjson.Fragment(answer) for answer in answers])


def decode_answers(payload: bytes, count: int, *, version: int) -> list[Answer | str]:
    """Return the *count* answers of cuDNN *version* in *payload*, a text for one refused.

    Raises:
        WireError: if they are not that.
    """
    items = _json(payload)
    if not isinstance(items, list) or len(items) != count:
        raise WireError("not as many answers as questions")
    try:
        return [_answer(item, version) for item in items]
    except (KeyError, TypeError, ValueError) as error:
        raise WireError("an answer has other fields") from error


def _answer(item: dict[str, Any], version: int) -> Answer | str:
    if "refused" in item:
        return str(item["refused"])
    return Answer(
        version=version, instant=_plans(item["instant"]), fallback=_plans(item["fallback"])
    )


def _plans(triples: list[tuple[int, list[int], int]]) -> tuple[Plan, ...]:
    return tuple(
        Plan(engine=int(engine), notes=tuple(notes), workspace=int(workspace))
        for engine, notes, workspace in triples
    )


def _triples(plans: Sequence[Plan]) -> list[tuple[int, tuple[int, ...], int]]:
    return [(plan.engine, plan.notes, plan.workspace) for plan in plans]


def _json(payload: bytes) -> Any:
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise WireError("not JSON") from error
