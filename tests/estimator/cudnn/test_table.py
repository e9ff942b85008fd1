"""A table gives back what a library said, and nothing else."""

from __future__ import annotations

import asyncio
import lzma
from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest

from estimator.cudnn import Answer, Direction, Plan
from estimator.cudnn.client import Plans
from estimator.cudnn.support import Release
from estimator.cudnn.table import TableError, decode_table, encode_table, text_of
from tests.estimator.cudnn.cases import A100, RELEASE, T4, convolution

QUESTION = convolution(channels=(256, 128), window=1)
OTHER = convolution(Direction.WEIGHT, dtype="float16", channels_last=True)
LIBRARY = Release(version=RELEASE, cuda=13)
PLAN = Plan(engine=38, notes=(0, 4), workspace=512)
ANSWER = Answer(
    version=RELEASE,
    instant=(PLAN, replace(PLAN, workspace=0), Plan(engine=1, notes=(), workspace=7)),
    fallback=(PLAN,),
)
EMPTY = Answer(version=RELEASE, instant=(), fallback=())
MADE = {"script": "a test"}


def encoded(**changes: object) -> bytes:
    """Return a table of one answer with fields of its JSON changed."""
    content = lzma.decompress(encode_table(LIBRARY, A100, {QUESTION: ANSWER}, made=MADE))
    return lzma.compress(orjson.dumps({**orjson.loads(content), **changes}))


def test_answers_come_back_as_they_went() -> None:
    """Plans in order, both modes, notes and workspaces; an answer without plans too."""
    table = decode_table(encode_table(LIBRARY, A100, {QUESTION: ANSWER, OTHER: EMPTY}, made=MADE))

    assert (table.release, table.card, table.made) == (LIBRARY, A100, MADE)
    assert table.answer(QUESTION) == ANSWER
    assert table.answer(OTHER) == EMPTY


def test_a_question_that_was_not_asked_has_no_answer() -> None:
    """One image more is another question."""
    table = decode_table(encode_table(LIBRARY, A100, {QUESTION: ANSWER}, made=MADE))

    assert table.answer(convolution(batch=33, channels=(256, 128), window=1)) is None


def test_equal_answers_are_equal_bytes() -> None:
    """Whatever the order they were asked in."""
    there = {QUESTION: ANSWER, OTHER: EMPTY}
    back = {OTHER: EMPTY, QUESTION: ANSWER}

    assert encode_table(LIBRARY, T4, there, made={}) == encode_table(LIBRARY, T4, back, made={})


def test_a_text_tells_questions_apart() -> None:
    """All that cuDNN is told is in it."""
    texts = {
        text_of(each)
        for each in (
            QUESTION,
            OTHER,
            replace(QUESTION, direction=Direction.DATA),
            replace(QUESTION, dtype="bfloat16"),
            replace(QUESTION, channels_last=True),
            convolution(channels=(256, 128), window=1, stride=2),
            convolution(channels=(256, 128), window=3),
            convolution(channels=(256, 128), window=1, groups=2),
        )
    }

    assert len(texts) == 8
    assert text_of(QUESTION) == "forward float32 first 32x256x56x56 128x256x1x1 1x1 0x0 1x1"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "cut off"),
        (b"not compressed at all", "not compressed JSON"),
        (encoded()[:-20], "cut off"),
        (lzma.compress(b"{"), "not compressed JSON"),
        (lzma.compress(b"[]"), "other fields"),
        (encoded(format=2), "other fields"),
        (encoded(version="9"), "other fields"),
        (encoded(card={"compute_capability": [8, 0], "multiprocessors": -1}), "the card"),
    ],
)
def test_what_is_no_table_is_refused(content: bytes, problem: str) -> None:
    """Nothing half read gets in."""
    with pytest.raises(TableError, match=problem):
        decode_table(content)


@pytest.mark.parametrize(
    "row", ["", "0", "0 1 x", "0 1 1", "0 9 1 2 3 4", "0 1 1 2 3 -4", [0, 1], "0 1 1 2 3 4 5"]
)
def test_a_broken_answer_is_refused_when_it_is_read(row: object) -> None:
    """Fewer or more workspaces than plans, numbers of nothing, no numbers."""
    table = decode_table(encoded(answers={text_of(QUESTION): row}))

    with pytest.raises(TableError, match="an answer"):
        table.answer(QUESTION)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_librarys_answers_survive_a_table(connect: Callable[[], Plans]) -> None:
    """What cuDNN 9.26 says of an A100, through a file."""
    questions = [
        convolution(direction, window=window, dtype=dtype, channels_last=last)
        for direction in Direction
        for window in (1, 3)
        for dtype in ("float32", "float16")
        for last in (False, True)
    ]
    told = await asyncio.to_thread(connect().ask, questions, A100)
    answers = {
        question: answer
        for question, answer in zip(questions, told, strict=True)
        if answer is not None
    }

    table = decode_table(encode_table(LIBRARY, A100, answers, made=MADE))

    assert len(answers) == len(questions) == 3 * 2 * 2 * 2
    assert [table.answer(question) for question in questions] == told
