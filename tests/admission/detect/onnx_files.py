"""ONNX files written field by field, good and bad: no library of theirs is needed.

    numbers, texts, messages -> bytes

Field numbers: onnx/onnx `onnx/onnx.proto`, release 1.23.2.
"""

from __future__ import annotations

import struct

FLOAT, INT64 = 1, 7


def varint(value: int) -> bytes:
    """Return *value* in seven bits a byte."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def number(field: int, value: int) -> bytes:
    """Return a field that is a whole number."""
    return varint(field << 3) + varint(value)


def part(field: int, content: bytes | str) -> bytes:
    """Return a field that is a text or a message."""
    data = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name: str, shape: tuple[int, ...], *, kind: int = FLOAT, data: bytes = b"") -> bytes:
    """Return a stored tensor, its raw *data* left out if there is none."""
    dims = b"".join(number(1, size) for size in shape)
    return dims + number(2, kind) + part(8, name) + (part(9, data) if data else b"")


def shape_of(name: str, sizes: tuple[int, ...]) -> bytes:
    """Return a stored tensor that is a shape."""
    return tensor(name, (len(sizes),), kind=INT64, data=struct.pack(f"<{len(sizes)}q", *sizes))


def attribute(name: str, *values: int) -> bytes:
    """Return an attribute that is a list of whole numbers."""
    return part(1, name) + b"".join(number(8, value) for value in values) + number(20, 7)


def flag(name: str) -> bytes:
    """Return an attribute that is the number one."""
    return part(1, name) + number(3, 1) + number(20, 2)


def node(op: str, inputs: str, outputs: str, *attributes: bytes, domain: str = "") -> bytes:
    """Return a node; names are separated by blanks."""
    return (
        b"".join(part(1, name) for name in inputs.split(" "))
        + b"".join(part(2, name) for name in outputs.split(" "))
        + part(4, op)
        + b"".join(part(5, each) for each in attributes)
        + (part(7, domain) if domain else b"")
    )


def value(name: str, *shape: int | str, kind: int = FLOAT) -> bytes:
    """Return an input or output."""
    sizes = (part(2, size) if isinstance(size, str) else number(1, size) for size in shape)
    dims = b"".join(part(1, size) for size in sizes)
    return part(1, name) + part(2, part(1, number(1, kind) + part(2, dims)))


def model(
    *nodes: bytes,
    inputs: tuple[bytes, ...] = (),
    tensors: tuple[bytes, ...] = (),
    outputs: tuple[str, ...] = ("y",),
) -> bytes:
    """Return a file of one graph."""
    graph = (
        b"".join(part(1, each) for each in nodes)
        + b"".join(part(5, each) for each in tensors)
        + b"".join(part(11, each) for each in inputs)
        + b"".join(part(12, value(each)) for each in outputs)
    )
    return number(1, 8) + part(2, "pytorch") + part(7, graph) + part(8, number(2, 17))


PERCEPTRON = model(
    node("Gemm", "x w b", "h", flag("transB")),
    node("Relu", "h", "r"),
    node("Reshape", "r s", "y"),
    inputs=(value("x", "batch", 12),),
    tensors=(tensor("w", (10, 12)), tensor("b", (10,)), shape_of("s", (-1, 10))),
)
"""A layer whose weights are beside the file: nothing of them is in it."""
