"""What cuDNN is asked of one convolution, and what it answers.

    Question -> Answer

Values only: no library, no process, no card. Two convolutions of one model with equal shapes are
one question.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Direction(StrEnum):
    """Which of a convolution's three products is computed."""

    FORWARD = "forward"
    DATA = "data"
    """The gradient of the input."""
    WEIGHT = "weight"
    """The gradient of the weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One convolution as cuDNN sees it. Groups are `input[1] // weight[1]`."""

    direction: Direction
    dtype: str
    """`float32`, `float64`, `float16` or `bfloat16`: of all three tensors."""
    input: tuple[int, ...]
    """N, C, then two or three spatial sizes."""
    weight: tuple[int, ...]
    """K, C / groups, then the filter's sizes."""
    output: tuple[int, ...]
    """N, K, then spatial sizes."""
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    channels_last: bool
    """Whether all three tensors are channels-last; else they are contiguous."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One way to compute it: an engine with its knobs, finalized for the card."""

    engine: int
    """cuDNN's global index of the engine; errata name it."""
    notes: tuple[int, ...]
    """`cudnnBackendNumericalNote_t` values: 0 tensor core, 1 down-converts inputs, 4 not
    deterministic, …"""
    workspace: int
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The plans that finalize, in the library's order of preference."""

    version: int
    """Of the cuDNN that says so: 9.26.0 is 92600."""
    instant: tuple[Plan, ...]
    """Of heuristics mode "instant", which PyTorch uses."""
    fallback: tuple[Plan, ...]
    """Of mode "fallback", tried after the others."""
