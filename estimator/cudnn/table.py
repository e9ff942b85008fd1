"""Answers of one cuDNN about one card as a file.

    Answers by Question -> bytes -> Table -> Answer

JSON, compressed. Questions are texts; a plan is its engine, by number, and its workspace; what
repeats is written once. Equal answers give equal bytes.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import orjson

from estimator.cudnn.cards import Card
from estimator.cudnn.checks import QuestionError, card_in
from estimator.cudnn.questions import Answer, Plan, Question
from estimator.cudnn.support import Release

FORMAT = 1
MOST_BYTES = 64 << 20
"""Of a table, uncompressed."""

_Engine = tuple[int, tuple[int, ...]]


class TableError(Exception):
    """A file holds no table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Answers of one release about one card."""

    release: Release
    card: Card
    made: Mapping[str, Any]
    """How: the script and the packages it asked."""
    engines: Sequence[Any]
    """Engines with their notes."""
    orders: Sequence[Any]
    """Numbers of engines, in order of preference."""
    answers: Mapping[str, Any]
    """By question: the numbers of two orders, "instant" and "fallback", then workspaces, as one
    text: a question is rarely asked, and lists of numbers are slow to read."""

    def __contains__(self, question: Question) -> bool:
        """Return whether there is an answer to *question*."""
        return text_of(question) in self.answers

    def answer(self, question: Question) -> Answer | None:
        """Return the answer to *question*, None if there is none.

        Raises:
            TableError: if it is broken.
        """
        row = self.answers.get(text_of(question))
        if row is None:
            return None
        try:
            first, second, *workspaces = map(int, row.split())
            if min(first, second, *workspaces) < 0:
                raise TableError("an answer has a negative number")
            instant, fallback = self.orders[first], self.orders[second]
            engines = [self.engines[number] for number in (*instant, *fallback)]
            plans = [
                Plan(engine=int(engine), notes=tuple(notes), workspace=workspace)
                for (engine, notes), workspace in zip(engines, workspaces, strict=True)
            ]
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise TableError("an answer is broken") from error
        return Answer(
            version=self.release.version,
            instant=tuple(plans[: len(instant)]),
            fallback=tuple(plans[len(instant) :]),
        )


def text_of(question: Question) -> str:
    """Return *question* as a text; its output follows from the rest."""
    shapes = (question.input, question.weight, question.stride, question.padding, question.dilation)
    sizes = " ".join("x".join(map(str, shape)) for shape in shapes)
    order = "last" if question.channels_last else "first"
    return f"{question.direction.value} {question.dtype} {order} {sizes}"


def encode_table(
    release: Release, card: Card, answers: Mapping[Question, Answer], *, made: Mapping[str, Any]
) -> bytes:
    """Return *answers* of *release* about *card* as a file."""
    engines: dict[_Engine, int] = {}
    orders: dict[tuple[int, ...], int] = {}
    rows: dict[str, str] = {}
    texts = {text_of(question): answer for question, answer in answers.items()}
    for text, answer in sorted(texts.items(), key=itemgetter(0)):
        row = [_order(plans, engines, orders) for plans in (answer.instant, answer.fallback)]
        row += [plan.workspace for plan in (*answer.instant, *answer.fallback)]
        rows[text] = " ".join(map(str, row))
    document = {
        "format": FORMAT,
        "made": made,
        "version": release.version,
        "cuda": release.cuda,
        "card": card,
        "engines": list(engines),
        "orders": list(orders),
        "answers": rows,
    }
    return lzma.compress(orjson.dumps(document), preset=9 | lzma.PRESET_EXTREME)


def decode_table(content: bytes) -> Table:
    """Return the table in *content*.

    Raises:
        TableError: if there is none.
    """
    match _json(content):
        case {
            "format": int(number),
            "made": dict(made),
            "version": int(version),
            "cuda": int(cuda),
            "card": dict(card),
            "engines": list(engines),
            "orders": list(orders),
            "answers": dict(answers),
        } if number == FORMAT:
            try:
                known = card_in(card)
            except QuestionError as error:
                raise TableError(str(error)) from error
            return Table(
                release=Release(version=version, cuda=cuda),
                card=known,
                made=made,
                engines=engines,
                orders=orders,
                answers=answers,
            )
    raise TableError("it has other fields")


def _order(
    plans: Sequence[Plan], engines: dict[_Engine, int], orders: dict[tuple[int, ...], int]
) -> int:
    """Return the number of the engines of *plans*, numbered now if they are new."""
    order = tuple(engines.setdefault((plan.engine, plan.notes), len(engines)) for plan in plans)
    return orders.setdefault(order, len(orders))


def _json(content: bytes) -> Any:
    """Return the JSON in *content*, of a bounded size."""
    try:
        reader = lzma.LZMADecompressor(format=lzma.FORMAT_XZ)
        text = reader.decompress(content, max_length=MOST_BYTES)
        if not reader.eof:
            raise TableError("it is cut off or too long")
        return orjson.loads(text)
    except (lzma.LZMAError, EOFError, orjson.JSONDecodeError) as error:
        raise TableError("it is not compressed JSON") from error
