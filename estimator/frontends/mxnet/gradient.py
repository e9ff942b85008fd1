"""The backward graph, made as MXNet's gradient pass makes it.

    forward graph, what is trained -> one entry a parameter: its gradient

Source: apache/mxnet@1.9.1 `src/nnvm/gradient.cc` (`Gradient`),
`src/executor/graph_executor.cc` (`AggregateGradient`, `InitFullGraph`).
Not modelled: mirroring (`MXNET_BACKWARD_DO_MIRROR`, `__force_mirroring__`).
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.frontends.mxnet.errors import unsupported
from estimator.frontends.mxnet.graph import (
    EITHER,
    FIRST,
    IDENTITY,
    NOTHING_SHARED,
    VARIABLE,
    Entry,
    Key,
    Node,
    Sharing,
)
from estimator.frontends.mxnet.operators.base import ZEROS, ZEROS_LIKE
from estimator.frontends.mxnet.operators.table import operator_named
from estimator.notes import UnknownCode

SUM_CAP = 8
"""Gradients that are added in one operator; more are added one by one.

Source: apache/mxnet@1.9.1 `src/executor/graph_executor.cc` (`MXNET_EXEC_INPLACE_GRAD_SUM_CAP`).
"""
HEAD_GRADIENT = "_head_grad_"


def gradients_of(
    order: Sequence[Node], heads: Sequence[Entry], trained: Sequence[Node], *, is_bound: bool
) -> list[Entry]:
    """Return the gradient of each of *trained*, in their order.

    *is_bound*: an executor that is bound whole, whose head gradients pass through an operator; a
    hybridised block takes them as they are.

    Raises:
        UnsupportedJobError: if an operator on the way has no gradient.
    """
    made = _Pass()
    for index, head in enumerate(heads):
        made.found[head] = [_head_gradient(head, index, is_bound=is_bound)]
    for node in reversed(order):
        if not node.is_variable:
            made.through(node)
    return made.of(trained)


def _head_gradient(head: Entry, index: int, *, is_bound: bool) -> Entry:
    """Return the gradient that comes from outside, an input of the graph."""
    outside = Node(
        VARIABLE,
        f"{HEAD_GRADIENT}{index}",
        shapes=[head.shape],
        dtypes=[head.dtype],
        is_backward=True,
    )
    if not is_bound:
        return Entry(outside, 0)
    operator = "_identity_with_attr_like_rhs"
    same = Node(
        operator,
        f"{HEAD_GRADIENT}{index}_id",
        inputs=[Entry(outside, 0), head],
        shapes=[head.shape],
        dtypes=[head.dtype],
        sharing=Sharing(pairs=((0, 0),), is_identity=True, ignored=frozenset({1})),
        is_backward=True,
        forward=head.node,
    )
    return Entry(same, 0)


class _Pass:
    """Gradients found so far, by the entry they belong to."""

    def __init__(self) -> None:
        self.found: dict[Key, list[Entry]] = {}

    def through(self, node: Node) -> None:
        """Add what a node's gradient tells about its inputs."""
        sums = [self.sum(entry) for entry in node.outputs()]
        if not node.inputs:
            return
        operator = operator_named(node.operator, node.name)
        if operator.gradient is None:
            raise unsupported(
                f"operator '{node.operator}' (node '{node.name[:128]}') has no gradient",
                code=UnknownCode.OPERATOR,
            )
        for entry, gradient in zip(node.inputs, operator.gradient(node, sums), strict=True):
            self.found.setdefault(entry, []).append(gradient)

    def sum(self, entry: Entry) -> Entry:
        """Return the sum of an entry's gradients, as few operators as MXNet takes."""
        found = self.found.pop(entry, [])
        if not found:
            return _node("_zeros_without_dtype", "zeros_without_dtype", [], entry)
        if len(found) == 1:
            return found[0]
        zeros = (ZEROS, ZEROS_LIKE)
        kept = [each for each in found if each.node.operator not in zeros] or found[:1]
        if len(kept) == 1:
            return kept[0]
        if len(kept) < SUM_CAP:
            return _node("add_n", "sum_grad", kept, entry, sharing=FIRST)
        return _chain(kept, entry)

    def of(self, trained: Sequence[Node]) -> list[Entry]:
        """Return the gradient of each parameter; one that two share is copied for the second."""
        seen: set[Key] = set()
        result = []
        for node in trained:
            found = self.sum(Entry(node, 0))
            if found in seen:
                found = _node("_copy", f"{found.node.name}_copy", [found], found, sharing=IDENTITY)
            seen.add(found)
            result.append(found)
        return result


def _chain(found: Sequence[Entry], entry: Entry) -> Entry:
    """Return a sum added up one by one, each after the one before."""
    total = found[0]
    for index, each in enumerate(found[1:], start=1):
        if found[index - 1].node is not each.node:
            each.node.controls.append(total.node)
        total = _node("_grad_add", f"sum_grad_{index}", [total, each], entry, sharing=EITHER)
    return _node("identity", "sum_grad_final", [total], entry, sharing=IDENTITY)


def _node(
    operator: str,
    name: str,
    inputs: Sequence[Entry],
    like: Entry,
    *,
    sharing: Sharing = NOTHING_SHARED,
) -> Entry:
    made = Node(
        operator,
        name,
        inputs=list(inputs),
        shapes=[like.shape],
        dtypes=[like.dtype],
        sharing=sharing,
        is_backward=True,
        forward=like.node,
    )
    return Entry(made, 0)
