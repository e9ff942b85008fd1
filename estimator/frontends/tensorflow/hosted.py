"""Small integers the host knows while a graph runs: shapes, counters, conditions of loops.

Node, known inputs -> known outputs

Only what decides how often a loop runs and which branch is taken. Values of tensors on the card
are never known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
from tensorflow.python.framework import tensor_util

from estimator.frontends.tensorflow.graph import Node, TensorType

MOST_ELEMENTS = 64
WHOLE = frozenset({"int32", "int64", "bool", "uint32", "uint64"})

Known = Any
"""A numpy array, or None where it is not known."""

RULES: Mapping[str, Callable[..., Any]] = {
    "Add": numpy.add,
    "AddV2": numpy.add,
    "Equal": numpy.equal,
    "FloorDiv": numpy.floor_divide,
    "Greater": numpy.greater,
    "GreaterEqual": numpy.greater_equal,
    "Identity": lambda value: value,
    "Less": numpy.less,
    "LessEqual": numpy.less_equal,
    "LogicalAnd": numpy.logical_and,
    "LogicalNot": numpy.logical_not,
    "LogicalOr": numpy.logical_or,
    "Max": lambda value, axes: numpy.max(value, tuple(numpy.atleast_1d(axes))),
    "Maximum": numpy.maximum,
    "Min": lambda value, axes: numpy.min(value, tuple(numpy.atleast_1d(axes))),
    "Minimum": numpy.minimum,
    "Mul": numpy.multiply,
    "Neg": numpy.negative,
    "NotEqual": numpy.not_equal,
    "Pack": lambda *values: numpy.stack(values),
    "Sub": numpy.subtract,
}


def is_small(kind: TensorType) -> bool:
    """Return whether a tensor of *kind* is one the host may know."""
    return kind.dtype in WHOLE and kind.elements is not None and kind.elements <= MOST_ELEMENTS


def outputs_of(node: Node, inputs: Sequence[Known], kinds: Sequence[TensorType]) -> list[Known]:
    """Return what is known of the outputs of *node*; *kinds* are the types of its inputs."""
    if not any(is_small(each) for each in node.outputs):
        return [None] * len(node.outputs)
    match node.operator:
        case "Const":
            return [tensor_util.MakeNdarray(node.attributes["value"].tensor)]
        case "Shape" if kinds[0].shape is not None:
            return [numpy.array(kinds[0].shape, dtype=numpy.int64)]
        case "Size" if kinds[0].elements is not None:
            return [numpy.array(kinds[0].elements, dtype=numpy.int64)]
    rule = RULES.get(node.operator)
    if rule is None or any(value is None for value in inputs):
        return [None] * len(node.outputs)
    return [rule(*inputs)]
