"""Our planner on a symbol, and its graph in the form the oracle writes.

symbol, shapes -> Bound, Plan
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimator.frontends.mxnet.bound import Bound, bind
from estimator.frontends.mxnet.common_expressions import eliminated
from estimator.frontends.mxnet.graph import in_order
from estimator.frontends.mxnet.inference import infer
from estimator.frontends.mxnet.operators.table import canonical
from estimator.frontends.mxnet.symbol import read_symbol
from tests.estimator.frontends.mxnet.oracle import Row


def bound_of(
    document: Mapping[str, Any],
    shapes: Mapping[str, Sequence[int]],
    types: Mapping[str, str] | None = None,
) -> Bound:
    """Return a symbol ready to be trained."""
    heads = eliminated(read_symbol(document))
    infer(in_order(heads), {name: tuple(shape) for name, shape in shapes.items()}, types or {})
    return bind(heads, frozenset(shapes), is_trained=True)


def rows_of(bound: Bound) -> tuple[Row, ...]:
    """Return every node with the entries it reads, numbered as MXNet numbers them."""
    numbers: dict[tuple[int, int], int] = {}
    for node in bound.order:
        for index in range(node.num_outputs):
            numbers[id(node), index] = len(numbers)
    return tuple(
        ("var", (), ())
        if node.is_variable
        else (
            canonical(node.operator),
            tuple(numbers[id(entry.node), entry.output] for entry in node.inputs),
            tuple(entry.shape for entry in node.outputs()),
        )
        for node in bound.order
    )


def named_alike(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return rows with one name for each operator."""
    return tuple((canonical(name), read, written) for name, read, written in rows)
