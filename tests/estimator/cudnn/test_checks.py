"""What does not reach C code."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from estimator.cudnn.checks import LARGEST, QuestionError, card_in, question_in
from tests.estimator.cudnn.cases import A100, convolution

MANY = 1 << 20


def written(**changes: Any) -> dict[str, Any]:
    """Return a good question as it travels, with *changes*."""
    document: dict[str, Any] = orjson.loads(orjson.dumps(convolution()))
    return document | changes


def test_a_question_is_read_as_it_was_written() -> None:
    """Two and three dimensions are equal after the way there."""
    for question in (convolution(), convolution(spatial=3, groups=4)):
        assert question_in(orjson.loads(orjson.dumps(question))) == question


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"direction": "sideways"}, "direction or dtype"),
        ({"dtype": "int8"}, "direction or dtype"),
        ({"dtype": ["float32"]}, "direction or dtype"),
        ({"channels_last": 1}, "channels_last"),
        ({"more": 1}, "other fields"),
        ({"input": [32, 64, 56]}, "input has not the length"),
        ({"input": "32x64x56x56"}, "input has not the length"),
        ({"stride": [1, 1, 1, 1]}, "stride has not the length"),
        ({"stride": [0, 1]}, "stride is not of whole numbers from 1"),
        ({"padding": [-1, 1]}, "padding is not of whole numbers from 0"),
        ({"input": [32, 64, 56.0, 56]}, "input is not of whole numbers"),
        ({"input": [True, 64, 56, 56]}, "input is not of whole numbers"),
        ({"input": [LARGEST + 1, 64, 56, 56]}, "input is not of whole numbers"),
        ({"stride": [1, 1, 1]}, "stride, padding and dilation differ"),
        (
            {"stride": [1] * 3, "padding": [1] * 3, "dilation": [1] * 3},
            "not the stride's dimensions",
        ),
        ({"input": [MANY, MANY, MANY, MANY]}, "too large"),
        ({"input": [32, 63, 56, 56], "weight": [64, 2, 3, 3]}, "whole groups"),
        ({"input": [32, 32, 56, 56]}, "whole groups"),
        ({"output": [31, 64, 56, 56]}, "batch"),
        ({"output": [32, 64, 56, 55]}, "size the window gives"),
        ({"dilation": [60, 60]}, "size the window gives"),
    ],
)
def test_what_is_no_convolution_is_refused(changes: dict[str, Any], reason: str) -> None:
    """Wrong types, sizes out of bounds and shapes that do not fit are named."""
    with pytest.raises(QuestionError, match=reason):
        question_in(written(**changes))


@pytest.mark.parametrize("item", [None, 1, "x", [], [1], {}])
def test_what_is_no_question_is_refused(item: Any) -> None:
    """Anything JSON may hold is refused in words."""
    with pytest.raises(QuestionError):
        question_in(item)


@pytest.mark.parametrize(
    "item",
    [
        None,
        {},
        {"compute_capability": [8], "multiprocessors": 1},
        {"compute_capability": [8, 0], "multiprocessors": 0},
        {"compute_capability": [8, 0], "multiprocessors": 1025},
        {"compute_capability": ["8", 0], "multiprocessors": 1},
    ],
)
def test_what_is_no_card_is_refused(item: Any) -> None:
    """A card is a capability with a bounded number of multiprocessors."""
    with pytest.raises(QuestionError, match="compute capability"):
        card_in(item)


def test_a_card_is_read_as_it_was_written() -> None:
    """A card is equal after the way there."""
    assert card_in(orjson.loads(orjson.dumps(A100))) == A100
