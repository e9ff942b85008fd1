"""Equal calls on equal inputs become one, as MXNet does before it makes the backward graph.

    heads -> heads

Source: apache/mxnet@1.9.1 `src/executor/eliminate_common_expr_pass.cc`, `graph_executor.cc`
(`MXNET_ELIMINATE_COMMON_EXPR`, on by default since 1.6).
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.frontends.mxnet.graph import IDENTITY, Entry, Node, in_order
from estimator.frontends.mxnet.operators.table import operator_named

_Call = tuple[str, tuple[tuple[str, str], ...], tuple[Entry, ...]]


def eliminated(heads: Sequence[Entry]) -> list[Entry]:
    """Return the heads of a graph in which no call is made twice.

    Calls that draw numbers, keep a state or write to their inputs stay as they are, and so do
    those without inputs.
    """
    kept: dict[_Call, Node] = {}
    instead: dict[Node, Node] = {}
    for node in in_order(heads):
        if node.is_variable:
            continue
        if instead:
            node.inputs = [_moved(entry, instead) for entry in node.inputs]
        rules = operator_named(node.operator, node.name)
        if not node.inputs or rules.states or not rules.is_merged:
            continue
        call = (
            node.operator,
            tuple(sorted(node.attributes.items())),
            tuple(node.inputs),
        )
        first = kept.setdefault(call, node)
        if first is not node:
            instead[node] = first
    return _distinct([_moved(head, instead) for head in heads])


def _moved(entry: Entry, instead: dict[Node, Node]) -> Entry:
    node = instead.get(entry.node)
    return entry if node is None else Entry(node, entry.output)


def _distinct(heads: Sequence[Entry]) -> list[Entry]:
    """Return heads of which no two are the same entry: the later one is a copy."""
    seen: set[Entry] = set()
    result = []
    for head in heads:
        if head in seen:
            copy = Node(
                "_copy",
                f"{head.node.name}_copy",
                inputs=[head],
                shapes=[head.node.shapes[head.output]],
                dtypes=[head.node.dtypes[head.output]],
                sharing=IDENTITY,
            )
            result.append(Entry(copy, 0))
            continue
        seen.add(head)
        result.append(head)
    return result
