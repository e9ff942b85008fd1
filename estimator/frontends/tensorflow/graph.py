"""A TensorFlow graph as plain values, in the order it was traced.

GraphDef, shapes by name -> Graph

Shapes come from the graph as it was traced: Grappler keeps the names of what it changes, and
an operator it puts in another's place has the same output.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.framework import dtypes, op_def_registry

from estimator.errors import TraceError

NOT_DENSE = frozenset({"resource", "variant", "string"})
"""Handles, lists and texts: they have no bytes of their own on the card."""
SIZES = {
    name: tf.as_dtype(number).size
    for number, name in dtypes._TYPE_TO_STRING.items()
    if name not in NOT_DENSE and not name.endswith("_ref")
}
"""Bytes of one element by dtype name."""

IDENTITIES = "IdentityN"

Shape = tuple[int, ...]
Shapes = Mapping[str, tuple[Shape | None, ...]]
"""Node name -> the shape of each output, None where it is not known."""


class TensorType(NamedTuple):
    """Shape (None: not known) and dtype name of one output."""

    shape: Shape | None
    dtype: str

    @property
    def elements(self) -> int | None:
        """Return the number of elements, None if the shape is not known."""
        return None if self.shape is None else math.prod(self.shape)

    @property
    def nbytes(self) -> int | None:
        """Return the bytes of the tensor, None if the shape is not known."""
        if self.dtype in NOT_DENSE:
            return 0
        return None if self.shape is None else math.prod(self.shape) * SIZES[self.dtype]


class Edge(NamedTuple):
    """One output of one node, by their numbers."""

    node: int
    output: int


@dataclass(slots=True, kw_only=True)
class Node:
    """One operation. Numbers of other nodes are indices into `Graph.nodes`."""

    name: str
    operator: str
    inputs: tuple[Edge, ...]
    controls: tuple[int, ...]
    outputs: tuple[TensorType, ...]
    attributes: Mapping[str, Any]
    """The proto's attributes."""


@dataclass(slots=True, kw_only=True)
class Graph:
    """Nodes that something fetched needs, in the order they were made."""

    nodes: tuple[Node, ...]
    arguments: tuple[int, ...]
    """The nodes a caller feeds, in the order of the arguments; -1: nobody needs it."""
    fetches: tuple[Edge, ...]
    """What the caller gets."""
    functions: Mapping[str, Any]
    """Function name -> FunctionDef, for the bodies of loops and branches."""


def read_graph(
    graph_def: Any,
    shapes: Shapes,
    *,
    order: Sequence[str],
    arguments: Sequence[str],
    fetches: Sequence[str],
    controls: Iterable[str] = (),
) -> Graph:
    """Return the nodes of *graph_def* that *fetches* (`node:output`) and *controls* need.

    *order* is the order of the names as traced; what is not in it comes last.

    Raises:
        TraceError: if an edge leads nowhere.
    """
    position = {name: index for index, name in enumerate(order)}
    protos = {node.name: node for node in graph_def.node}
    wanted = _needed(protos, [*(_node_of(each) for each in fetches), *controls])
    names = sorted(wanted, key=lambda name: (position.get(name, len(position)), name))
    number = {name: index for index, name in enumerate(names)}
    try:
        nodes = tuple(_node(protos[name], number, shapes) for name in names)
        _pass_on(nodes)
        return Graph(
            nodes=nodes,
            arguments=tuple(number.get(name, -1) for name in arguments),
            fetches=tuple(_edge(each, number) for each in fetches),
            functions={each.signature.name: each for each in graph_def.library.function},
        )
    except KeyError as error:
        raise TraceError(f"model: the traced graph lacks the node {error}") from error


def shapes_of(graph_def: Any) -> Shapes:
    """Return the shapes a graph definition made with `add_shapes=True` carries."""
    return {
        node.name: tuple(_shape(each) for each in node.attr["_output_shapes"].list.shape)
        for node in graph_def.node
    }


def _shape(proto: Any) -> Shape | None:
    if proto.unknown_rank or any(dimension.size < 0 for dimension in proto.dim):
        return None
    return tuple(dimension.size for dimension in proto.dim)


def _needed(protos: Mapping[str, Any], roots: Iterable[str]) -> set[str]:
    found: set[str] = set()
    stack = list(roots)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(_node_of(each) for each in protos[name].input)
    return found


def _node_of(text: str) -> str:
    return text.lstrip("^").partition(":")[0]


def _edge(text: str, number: Mapping[str, int]) -> Edge:
    name, _, output = text.partition(":")
    return Edge(number[name], int(output or 0))


def _node(proto: Any, number: Mapping[str, int], shapes: Shapes) -> Node:
    data = [text for text in proto.input if not text.startswith("^")]
    kinds = _dtypes(proto)
    known = shapes.get(proto.name, ())
    if proto.op == "Const":
        known = (tuple(each.size for each in proto.attr["value"].tensor.tensor_shape.dim),)
    if len(known) != len(kinds):
        known = (None,) * len(kinds)
    return Node(
        name=proto.name,
        operator=proto.op,
        inputs=tuple(_edge(text, number) for text in data),
        controls=tuple(number[text[1:]] for text in proto.input if text.startswith("^")),
        outputs=tuple(TensorType(*pair) for pair in zip(known, kinds, strict=True)),
        attributes=proto.attr,
    )


def _pass_on(nodes: Sequence[Node]) -> None:
    """Give nodes that only pass their inputs on, and were given fewer, their inputs' types."""
    for node in nodes:
        if node.operator == IDENTITIES and any(each.shape is None for each in node.outputs):
            node.outputs = tuple(nodes[edge.node].outputs[edge.output] for edge in node.inputs)


def _dtypes(proto: Any) -> list[str]:
    """Return the dtype name of each output, from the operator's definition."""
    found: list[str] = []
    for kind, attribute, count in _outputs(proto.op):
        if count == LIST:
            found += [_dtype(each) for each in proto.attr[attribute].list.type]
            continue
        times = proto.attr[count].i if count else 1
        found += [_dtype(kind or proto.attr[attribute].type)] * times
    return found


LIST = "*"


@cache
def _outputs(operator: str) -> tuple[tuple[int, str, str], ...]:
    """Return fixed dtype, attribute that names it, and attribute that counts, by output."""
    definition = op_def_registry.get(operator)
    if definition is None:
        raise TraceError(f"model: TensorFlow does not know the operator '{operator}'")
    return tuple(
        (0, each.type_list_attr, LIST)
        if each.type_list_attr
        else (each.type, each.type_attr, each.number_attr)
        for each in definition.output_arg
    )


@cache
def _dtype(number: int) -> str:
    return str(dtypes._TYPE_TO_STRING[number])
