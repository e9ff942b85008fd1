"""The forward graph of an ONNX file, as JSON types for `model.config`.

    bytes -> inputs, tensors, nodes, outputs

Values are numbered (inputs, then stored tensors, then results of nodes), so a node can only take
what was before it: there is no cycle in what comes out. Of stored tensors names, dimensions and
types are read, and the numbers of small ones, which say shapes; weights are stepped over, and files
with weights beside the model are never opened.
Not read: bodies of `If`, `Loop` and `Scan`, functions, training information, sparse tensors; a node
that needs them is named by the estimator. Source: onnx/onnx `onnx/onnx.proto`, release 1.23.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from admission.detect.onnx_tensors import plain, tensor_of, type_of
from admission.detect.protobuf import MessageError, Value, Walk, part, real, text, whole

MAX_FIELDS = 150_000
"""Of all messages of a file. A Swin transformer of 5,000 nodes has 71,000."""
MAX_NODES = 16_384
MAX_TENSORS = 16_384
MAX_INPUTS = 64
MAX_LIST = 64
"""Inputs or outputs of a node, and numbers of an attribute."""
MAX_VALUES = 150_000
"""Numbers, names and lists of all that comes out. A spec may have a few more."""

_LISTS = (6, 7, 8)
"""`AttributeProto.AttributeType` of lists: FLOATS, INTS, STRINGS."""

ABSENT = -1
"""The number of an input that a node is not given."""


@dataclass(slots=True)
class _Node:
    operator: str = ""
    domain: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Graph:
    nodes: list[_Node] = field(default_factory=list)
    tensors: list[dict[str, Any]] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


def read_graph(content: bytes) -> dict[str, Any]:
    """Return the graph of the ONNX file *content*.

    Raises:
        MessageError: if it is none, or larger than anybody's; completes `REFERENCE …`.
    """
    walk = Walk(MAX_FIELDS)
    graph: _Graph | None = None
    opsets: dict[str, int] = {}
    producer = ["", ""]
    for number, value in walk.fields(memoryview(content)):
        match number:
            case 2 | 3:
                producer[number - 2] = text(value)[:100]
            case 7:
                if graph is not None:
                    raise MessageError("is broken: it has two graphs")
                graph = _graph(walk, part(value))
            case 8:
                domain, version = _opset(walk, part(value))
                opsets[domain] = version
    if graph is None or not graph.nodes:
        raise MessageError("is no ONNX model with a graph")
    opset = opsets.get("", opsets.get("ai.onnx", 0))
    return {
        "format": "onnx",
        "opset": opset,
        "producer": " ".join(each for each in producer if each),
        **_numbered(graph),
    }


def _opset(walk: Walk, message: memoryview) -> tuple[str, int]:
    domain, version = "", 0
    for number, value in walk.fields(message):
        if number == 1:
            domain = text(value)
        elif number == 2:
            version = whole(value)
    if not 0 <= version <= 10_000:
        raise MessageError(f"asks for version {version} of an operator set")
    return domain, version


def _graph(walk: Walk, message: memoryview) -> _Graph:
    graph = _Graph()
    for number, value in walk.fields(message):
        match number:
            case 1:
                graph.nodes.append(_node(walk, part(value)))
            case 5:
                graph.tensors.append(tensor_of(walk, part(value)))
            case 11:
                graph.inputs.append(type_of(walk, part(value)))
            case 12:
                graph.outputs.append(type_of(walk, part(value))["name"])
        if len(graph.nodes) > MAX_NODES or len(graph.tensors) > MAX_TENSORS:
            raise MessageError(f"has more than {MAX_NODES} nodes or {MAX_TENSORS} tensors")
    return graph


def _node(walk: Walk, message: memoryview) -> _Node:
    node = _Node()
    for number, value in walk.fields(message):
        match number:
            case 1:
                node.inputs.append(text(value))
            case 2:
                node.outputs.append(text(value))
            case 4:
                node.operator = text(value, most=128)
            case 5:
                name, found = _attribute(walk, part(value))
                if found is not None:
                    node.attributes[name] = found
            case 7:
                node.domain = text(value, most=128)
    if max(len(node.inputs), len(node.outputs)) > MAX_LIST or not node.outputs:
        raise MessageError(f"has a node of no or more than {MAX_LIST} results or inputs")
    return node


def _attribute(walk: Walk, message: memoryview) -> tuple[str, Any]:
    """Return name and value of an attribute; None for a graph, and what else is not read."""
    name, many, kind = "", list[Any](), 0
    found: Any = None
    for number, value in walk.fields(message):
        match number:
            case 1:
                name = text(value, most=128)
            case 20:
                kind = whole(value)
            case 2:
                found = plain(real(value))
            case 3:
                found = plain(whole(value))
            case 4:
                found = text(value)
            case 5:
                found = tensor_of(walk, part(value))
            case 7:
                many.extend(_reals(value))
            case 8:
                many.extend(plain(each) for each in walk.numbers(value))
            case 9:
                many.append(text(value))
        if len(many) > MAX_LIST:
            return name, None
    return name, many if many or kind in _LISTS else found


def _reals(value: Value) -> Iterator[float]:
    found = part(value)
    if len(found) > 4 * MAX_LIST:
        raise MessageError(f"has an attribute of more than {MAX_LIST} numbers")
    for start in range(0, len(found), 4):
        yield plain(real(found[start : start + 4]))


def _numbered(graph: _Graph) -> dict[str, Any]:
    """Return the graph with numbers for the names of its values.

    Raises:
        MessageError: if a node takes what no node before it makes, or there is too much.
    """
    constants = {
        node.outputs[0]: {**_constant(node), "constant": True}
        for node in graph.nodes
        if node.operator == "Constant" and not node.domain
    }
    used = {name for node in graph.nodes for name in node.inputs} | set(graph.outputs)
    stored = {t["name"]: t for t in graph.tensors if t["name"] in used} | {
        name: tensor for name, tensor in constants.items() if name in used
    }
    inputs = [each for each in graph.inputs if each["name"] not in stored]
    if len(inputs) > MAX_INPUTS or len(graph.outputs) > MAX_INPUTS:
        raise MessageError(f"has more than {MAX_INPUTS} inputs or outputs")
    numbers = {each["name"]: index for index, each in enumerate(inputs)}
    numbers |= {name: len(inputs) + index for index, name in enumerate(stored)}
    if len(numbers) != len(inputs) + len(stored):
        raise MessageError("is broken: two of its inputs have one name")
    nodes = []
    count = len(numbers)
    for node in graph.nodes:
        if node.operator == "Constant" and not node.domain:
            continue
        taken = _taken(node, numbers)
        for name in node.outputs:
            if name in numbers:
                raise MessageError("is broken: two nodes make a value of one name")
            if name:
                numbers[name] = count
            count += 1
        nodes.append(
            {
                "op": f"{node.domain}.{node.operator}" if _is_foreign(node) else node.operator,
                "inputs": taken,
                "outputs": len(node.outputs),
                **({"attributes": node.attributes} if node.attributes else {}),
            }
        )
    made = {
        "inputs": inputs,
        "tensors": [{**tensor, "name": name[:200]} for name, tensor in stored.items()],
        "nodes": nodes,
        "outputs": _taken(_Node(inputs=graph.outputs), numbers),
    }
    if sum(_sizes([made])) > MAX_VALUES:
        raise MessageError(f"has a graph of more than {MAX_VALUES} values")
    return made


def _is_foreign(node: _Node) -> bool:
    return node.domain not in ("", "ai.onnx")


def _taken(node: _Node, numbers: dict[str, int]) -> list[int]:
    missing = [name for name in node.inputs if name and name not in numbers]
    if missing:
        raise MessageError(
            f"is broken or has a cycle: no node before {node.operator or 'its outputs'} makes "
            f"{missing[0]:.100}"
        )
    return [numbers.get(name, ABSENT) for name in node.inputs]


def _constant(node: _Node) -> dict[str, Any]:
    """Return the tensor that a node `Constant` stands for."""
    for name, value in node.attributes.items():
        if name == "value" and isinstance(value, dict):
            return value
        if name in ("value_float", "value_int"):
            return _small([value], shape=[])
        if name in ("value_floats", "value_ints"):
            return _small(value, shape=[len(value)])
    raise MessageError("has a constant that is no tensor of numbers")


def _small(values: list[Any], *, shape: list[int]) -> dict[str, Any]:
    is_whole = all(isinstance(value, int) for value in values)
    return {"dtype": "int64" if is_whole else "float32", "shape": shape, "values": values}


def _sizes(values: Iterable[Any]) -> Iterator[int]:
    """Yield one for each value in *values*, those within others included. They nest four deep."""
    for value in values:
        yield 1
        if isinstance(value, dict):
            yield from _sizes(value.values())
        elif isinstance(value, list):
            yield from _sizes(value)
