"""What a question must be before it reaches C code.

    JSON types -> Question | reason

Sizes are bounded, and the three shapes fit each other: what is not a convolution is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from estimator.cudnn.cards import MAX_MULTIPROCESSORS, Card
from estimator.cudnn.questions import Direction, Question

ELEMENT_BYTES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}
SPATIAL = (2, 3)
LARGEST = (1 << 31) - 1
"""Of a size, stride, padding or dilation: cuDNN's own limit of a dimension."""
MOST_BYTES = 1 << 62
"""Of a tensor: offsets in bytes stay below 2^63."""

_SHAPES = ("input", "weight", "output")
_WINDOW = ("stride", "padding", "dilation")
_KEYS = {"direction", "dtype", "channels_last", *_SHAPES, *_WINDOW}


class QuestionError(Exception):
    """What was asked is not a question."""


def card_in(item: Any) -> Card:
    """Return the card in *item*.

    Raises:
        QuestionError: if it is none.
    """
    match item:
        case {"compute_capability": [int(major), int(minor)], "multiprocessors": int(count)}:
            if 0 < count <= MAX_MULTIPROCESSORS:
                return Card(compute_capability=(major, minor), multiprocessors=count)
    raise QuestionError("the card is not a compute capability with its multiprocessors")


def question_in(item: Any) -> Question:
    """Return the question in *item*.

    Raises:
        QuestionError: if it is none.
    """
    if not isinstance(item, Mapping) or set(item) != _KEYS:
        raise QuestionError("a question has other fields")
    if item["direction"] not in tuple(Direction) or item["dtype"] not in tuple(ELEMENT_BYTES):
        raise QuestionError("the direction or dtype is not known")
    if not isinstance(item["channels_last"], bool):
        raise QuestionError("channels_last is not true or false")
    question = Question(
        direction=Direction(item["direction"]),
        dtype=item["dtype"],
        channels_last=item["channels_last"],
        **{name: _integers(item[name], name) for name in (*_SHAPES, *_WINDOW)},
    )
    if (problem := _problem(question)) is not None:
        raise QuestionError(problem)
    return question


def _integers(value: Any, name: str) -> tuple[int, ...]:
    least = 0 if name == "padding" else 1
    lengths = SPATIAL if name in _WINDOW else [spatial + 2 for spatial in SPATIAL]
    if not isinstance(value, list) or len(value) not in lengths:
        raise QuestionError(f"{name} has not the length of a convolution's")
    if not all(type(each) is int and least <= each <= LARGEST for each in value):
        raise QuestionError(f"{name} is not of whole numbers from {least} to {LARGEST}")
    return tuple(value)


def _problem(question: Question) -> str | None:
    """Return why the parts of *question* do not fit each other, None if they do."""
    spatial = len(question.stride)
    shapes = (question.input, question.weight, question.output)
    windows = (question.padding, question.dilation)
    if any(len(each) != spatial for each in windows):
        return "stride, padding and dilation differ in length"
    if any(len(each) != spatial + 2 for each in shapes):
        return "the shapes have not the stride's dimensions"
    nbytes = ELEMENT_BYTES[question.dtype]
    if any(prod(shape) * nbytes > MOST_BYTES for shape in shapes):
        return "a tensor is too large"
    groups, rest = divmod(question.input[1], question.weight[1])
    if rest or question.weight[0] % groups:
        return "the channels are not those of whole groups"
    if question.output[:2] != (question.input[0], question.weight[0]):
        return "the output has not the input's batch and the weight's channels"
    if question.output[2:] != tuple(_output_sizes(question)):
        return "the output is not of the size the window gives"
    return None


def _output_sizes(question: Question) -> Sequence[int]:
    """Return how often the window fits each axis; not positive if it does not."""
    axes = zip(
        question.input[2:],
        question.weight[2:],
        question.stride,
        question.padding,
        question.dilation,
        strict=True,
    )
    return [
        (size + 2 * padding - dilation * (window - 1) - 1) // stride + 1
        for size, window, stride, padding, dilation in axes
    ]
