"""Shapes and types of a forward graph, from those of what is fed to it.

    heads, shapes and types of the data -> the same graph, every shape known

Rules run in order until nothing changes: most graphs are done after one pass, and recurrent ones
whose first state has an open batch after two or three. Source: apache/mxnet@1.9.1
`src/executor/infer_graph_attr_pass.cc`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.errors import invalid
from estimator.frontends.mxnet.graph import ITEM_BYTES, Node, Shape
from estimator.frontends.mxnet.operators.base import Call, Inferred
from estimator.frontends.mxnet.operators.table import operator_named

MAX_ELEMENTS = 1 << 40
"""Elements of one tensor; 4 TiB in single precision."""
MAX_RANK = 32
MAX_PASSES = 8


def infer(order: Sequence[Node], shapes: Mapping[str, Shape], types: Mapping[str, str]) -> None:
    """Fill in shapes and types of the nodes in *order*.

    Raises:
        SpecError: if shapes do not go together, or a parameter's cannot be known.
    """
    for node in order:
        if node.is_variable:
            _start(node, shapes, types)
    pending = [node for node in order if not node.is_variable]
    for _ in range(MAX_PASSES):
        changed = [node for node in pending if _visit(node)]
        pending = [node for node in pending if not _is_done(node)]
        if not pending or not changed:
            break
    _check(order)
    for node in order:
        _set_types(node)
    for node in order:
        node.dtypes[:] = [dtype or "float32" for dtype in node.dtypes]


def _start(node: Node, shapes: Mapping[str, Shape], types: Mapping[str, str]) -> None:
    """Give a variable the shape and type it is bound with, or has in the symbol."""
    shape = shapes.get(node.name)
    if shape is None:
        written = Attributes(node.name, node.attributes).integers("__shape__")
        shape = tuple(max(0, size) for size in written) or None
    if shape is not None:
        node.shapes[0] = _checked(node, shape)
    if node.name in types:
        node.dtypes[0] = types[node.name]


def _visit(node: Node) -> bool:
    """Run a node's rule and return whether it told something new."""
    operator = operator_named(node.operator, node.name)
    inputs = [entry.node.shapes[entry.output] for entry in node.inputs]
    if not operator.is_partial and (not inputs or not _is_known(inputs[0])):
        return False
    call = Call(
        Attributes(node.name, node.attributes), list(inputs), list(node.shapes), node.operator
    )
    if not operator.is_partial:
        call.inputs = [shape if _is_known(shape) else None for shape in inputs]
        if None in call.inputs and any(
            shape is None and not entry.node.is_variable and entry.node.inputs
            for shape, entry in zip(call.inputs, node.inputs, strict=True)
        ):
            return False
    try:
        found = operator.infer(call)
    except (ValueError, IndexError, ZeroDivisionError, OverflowError) as error:
        raise call.wrong(f"inputs of shapes {inputs} do not fit it") from error
    return _take(node, call, found)


def _take(node: Node, call: Call, found: Inferred) -> bool:
    changed = False
    for index, shape in enumerate(found.outputs):
        changed |= _merge(node, index, shape, call)
    for entry, shape in zip(node.inputs, found.inputs, strict=False):
        changed |= _merge(entry.node, entry.output, shape, call)
    return changed


def _merge(node: Node, index: int, shape: Shape | None, call: Call) -> bool:
    """Fill a known size into a tensor's shape and return whether that told something new."""
    if shape is None or index >= len(node.shapes):
        return False
    known = node.shapes[index]
    if known == shape:
        return False
    if known is None:
        node.shapes[index] = _checked(node, shape)
        return True
    if len(known) != len(shape) or any(
        left and right and left != right for left, right in zip(known, shape, strict=True)
    ):
        raise call.wrong(f"wants '{node.name[:128]}' of shape {shape}; it is {known}")
    joined = tuple(left or right for left, right in zip(known, shape, strict=True))
    node.shapes[index] = _checked(node, joined)
    return joined != known


def _checked(node: Node, shape: Shape) -> Shape:
    if len(shape) > MAX_RANK or min(shape, default=0) < 0 or prod(shape) > MAX_ELEMENTS:
        raise invalid(
            f"'{node.name[:128]}' would be of shape {shape[:MAX_RANK]}; "
            f"at most {MAX_ELEMENTS} elements are accepted"
        )
    return shape


def _is_known(shape: Shape | None) -> bool:
    return shape is not None and 0 not in shape


def _is_done(node: Node) -> bool:
    if None in node.shapes or any(0 in shape for shape in node.shapes if shape):
        return False
    read = [source.shapes[output] for source, output in node.inputs]
    return None not in read and not any(0 in shape for shape in read if shape)


def _check(order: Sequence[Node]) -> None:
    """Refuse a graph with open shapes, naming the first.

    Raises:
        SpecError: saying how to give the shape.
    """
    for node in order:
        for shape in node.shapes:
            if not _is_known(shape):
                raise invalid(
                    f"the shape of '{node.name[:128]}' ({node.operator}) cannot be known",
                    hint="give the shapes of inputs in model.options.shapes, "
                    "with 0 where the batch is",
                )


def _set_types(node: Node) -> None:
    if node.is_variable:
        return
    operator = operator_named(node.operator, node.name)
    attributes = Attributes(node.name, node.attributes)
    inputs = [entry.node.dtypes[entry.output] for entry in node.inputs]
    found = operator.types(attributes, inputs, node.num_outputs)
    unknown = [dtype for dtype in found.outputs if dtype not in ITEM_BYTES]
    if unknown:
        raise invalid(f"node '{node.name[:128]}' ({node.operator}): type {unknown[0]!r:.40}")
    node.dtypes[:] = list(found.outputs)
    for entry, dtype in zip(node.inputs, found.inputs, strict=False):
        if dtype is not None and entry.node.dtypes[entry.output] is None:
            entry.node.dtypes[entry.output] = dtype
