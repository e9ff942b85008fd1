"""A graph of operators as MXNet's executor sees it: forward nodes, then backward ones.

heads -> nodes in the order they run
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

Shape = tuple[int, ...]
VARIABLE = "null"
"""The operator of an input: data, a label, a parameter or an auxiliary state."""

ITEM_BYTES = {
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
    "int32": 4,
    "int64": 8,
}
"""Bytes of one element.

Source: apache/mxnet@1.9.1 `3rdparty/mshadow/mshadow/base.h` (`mshadow_sizeof`).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Which outputs of an operator may lie where an input lies.

    Source: the operator's `FInplaceOption`, `FInplaceIdentity` and `FIgnoreInputs`.
    """

    pairs: tuple[tuple[int, int], ...] = ()
    """(input, output), in the order they are tried."""
    is_identity: bool = False
    """The output is the input: it may share a storage that others still read."""
    ignored: frozenset[int] = frozenset()
    """Inputs whose values are not read; they keep nothing alive."""


NOTHING_SHARED = Sharing()
FIRST = Sharing(pairs=((0, 0),))
EITHER = Sharing(pairs=((0, 0), (1, 0)))
IDENTITY = Sharing(pairs=((0, 0),), is_identity=True)
SHAPE_ONLY = Sharing(ignored=frozenset({0}))


class Entry(NamedTuple):
    """One output of a node."""

    node: Node
    output: int

    @property
    def shape(self) -> Shape:
        """Return the shape, once it is known."""
        shape = self.node.shapes[self.output]
        assert shape is not None, self.node.name
        return shape

    @property
    def dtype(self) -> str:
        """Return the type of an element, once it is known."""
        dtype = self.node.dtypes[self.output]
        assert dtype is not None, self.node.name
        return dtype

    @property
    def elements(self) -> int:
        """Return the number of elements."""
        shape = self.node.shapes[self.output]
        assert shape is not None, self.node.name
        return prod(shape)

    @property
    def nbytes(self) -> int:
        """Return its bytes as an array of its own."""
        node, output = self
        shape, dtype = node.shapes[output], node.dtypes[output]
        assert shape is not None, node.name
        assert dtype is not None, node.name
        return prod(shape) * ITEM_BYTES[dtype]


Key = tuple["Node", int]
"""A node and one of its outputs: what an entry is looked up by. An `Entry` is one."""


@dataclass(slots=True, eq=False)
class Node:
    """One call of an operator, or an input."""

    operator: str
    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    inputs: list[Entry] = field(default_factory=list)
    shapes: list[Shape | None] = field(default_factory=lambda: [None])
    dtypes: list[str | None] = field(default_factory=lambda: [None])
    sharing: Sharing = NOTHING_SHARED
    controls: list[Node] = field(default_factory=list)
    """Nodes that must run before this one although it reads none of their outputs."""
    is_backward: bool = False
    forward: Node | None = None
    """The forward node whose gradient this is part of."""

    @property
    def is_variable(self) -> bool:
        """Return whether this is an input of the graph."""
        return self.operator == VARIABLE

    @property
    def num_outputs(self) -> int:
        """Return the number of outputs, hidden ones included."""
        return len(self.shapes)

    def outputs(self) -> list[Entry]:
        """Return every output."""
        return [Entry(self, index) for index in range(len(self.shapes))]


def in_order(heads: Iterable[Entry], after: Sequence[Node] = ()) -> list[Node]:
    """Return the nodes that *heads* need, each after what it needs.

    *after* are nodes that come first: the order of other heads.
    Depth first: inputs in order, then what must run before, then the node.
    Source: `PostOrderDFSVisit` in apache/tvm@3387492b973882c4d4c96fea99c2272d5bc40499
    `nnvm/include/nnvm/graph.h`, through which apache/mxnet@1.9.1 numbers the nodes of every graph.
    """
    order = list(after)
    seen = set(after)
    begun: list[Node] = []
    """Nodes that wait for what they need; a None on the stack says that the last has it."""
    for head in heads:
        stack: list[Node | None] = [head.node]
        while stack:
            node = stack.pop()
            if node is None:
                order.append(begun.pop())
            elif node not in seen:
                seen.add(node)
                if not node.inputs and not node.controls:
                    order.append(node)
                    continue
                begun.append(node)
                stack.append(None)
                stack += node.controls[::-1]
                stack += [entry[0] for entry in node.inputs[::-1]]
    return order


def variables(order: Sequence[Node]) -> list[Node]:
    """Return the inputs of a graph, in the order MXNet lists its arguments."""
    return [node for node in order if node.is_variable]
