"""Stored tensors and declared types of an ONNX file: names, dimensions, and small numbers.

    TensorProto, ValueInfoProto -> JSON types

The data of a tensor is read only where it is small: shapes, axes, paddings, exponents. Data that is
kept in another file is nobody's to open.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from admission.detect.protobuf import MessageError, Value, Walk, part, text, whole

MAX_AXES = 16
MAX_DIMENSION = 1 << 40
MAX_WHOLE = 64
"""Elements up to which whole numbers are read: they may be a shape."""
MAX_REAL = 8
"""Elements up to which fractions are read: factors, limits, an exponent."""

LARGEST = 3.4028235e38
"""The largest fraction of 32 bits, in the place of infinity."""

TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
}  # fmt: skip
"""`TensorProto.DataType` as far as a model that trains may have it."""
_FORMATS = {
    "float32": "f", "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "int32": "i",
    "int64": "q", "bool": "?", "float16": "e", "float64": "d", "uint32": "I", "uint64": "Q",
}  # fmt: skip
_REALS = {"float32", "float16", "bfloat16", "float64"}
_FLOATS, _INTS, _LONGS, _RAW, _DOUBLES, _UNSIGNED = 4, 5, 7, 9, 10, 11


def tensor_of(walk: Walk, message: memoryview) -> dict[str, Any]:
    """Return name, type and dimensions of a tensor, and its values if they are few."""
    name, kind, shape = "", 0, list[int]()
    data: dict[int, list[Value]] = {}
    for number, value in walk.fields(message):
        match number:
            case 1:
                shape.extend(walk.numbers(value))
            case 2:
                kind = whole(value)
            case 8:
                name = text(value)
            case 4 | 5 | 7 | 9 | 10 | 11:
                data.setdefault(number, []).append(value)
        if len(shape) > MAX_AXES:
            raise MessageError(f"has a tensor of more than {MAX_AXES} dimensions")
    if any(not 0 <= size <= MAX_DIMENSION for size in shape):
        raise MessageError(f"has a tensor {name:.100} with a dimension that no tensor has")
    dtype = TYPES.get(kind, f"type {kind}")
    found = {"name": name, "dtype": dtype, "shape": shape}
    most = MAX_REAL if dtype in _REALS else MAX_WHOLE
    count = math.prod(shape)
    if count <= most and dtype in _FORMATS:
        values = _values(walk, data, dtype, most)
        if len(values) == count:
            found["values"] = [plain(value) for value in values]
    return found


def _values(walk: Walk, data: dict[int, list[Value]], dtype: str, most: int) -> list[Any]:
    """Return the numbers in whichever field has them; none if that is longer than *most*."""
    for number, values in data.items():
        pieces = [value for value in values if not isinstance(value, int)]
        if sum(len(piece) for piece in pieces) > 10 * most:
            return []
        if number == _RAW:
            return _unpacked(pieces[0] if pieces else memoryview(b""), _FORMATS[dtype])
        if number in (_FLOATS, _DOUBLES):
            kind = "f" if number == _FLOATS else "d"
            return [each for piece in pieces for each in _unpacked(piece, kind)]
        found = [each for value in values for each in walk.numbers(value)]
        if dtype == "float16":
            return list(_unpacked(b"".join((v & 0xFFFF).to_bytes(2, "little") for v in found), "e"))
        return [bool(value) for value in found] if dtype == "bool" else found
    return []


def _unpacked(content: memoryview | bytes, kind: str) -> list[Any]:
    size = struct.calcsize(f"<{kind}")
    if len(content) % size:
        raise MessageError("is broken: the data of a tensor has no whole number of elements")
    return list(struct.unpack(f"<{len(content) // size}{kind}", content))


def plain(value: float) -> float:
    """Return *value* as a spec may hold it: finite, and less than 2^63 either way."""
    if isinstance(value, float):
        return 0.0 if math.isnan(value) else max(-LARGEST, min(LARGEST, value))
    return max(1 - (1 << 63), min(value, (1 << 63) - 1))


def type_of(walk: Walk, message: memoryview) -> dict[str, Any]:
    """Return name, type and shape of an input or output; an open dimension is its name."""
    name, dtype = "", ""
    shape: Sequence[int | str] = ()
    for number, value in walk.fields(message):
        if number == 1:
            name = text(value)
        elif number == 2:
            for kind, content in walk.fields(part(value)):
                if kind == 1:
                    dtype, shape = _tensor_type(walk, part(content))
    return {"name": name, "dtype": dtype, "shape": list(shape)}


def _tensor_type(walk: Walk, message: memoryview) -> tuple[str, list[int | str]]:
    dtype, shape = "", list[int | str]()
    for number, value in walk.fields(message):
        if number == 1:
            dtype = TYPES.get(whole(value), f"type {whole(value)}")
        elif number == 2:
            for kind, dimension in walk.fields(part(value)):
                if kind == 1:
                    shape.append(_dimension(walk, part(dimension)))
    if len(shape) > MAX_AXES:
        raise MessageError(f"has an input of more than {MAX_AXES} dimensions")
    return dtype, shape


def _dimension(walk: Walk, message: memoryview) -> int | str:
    """Return a size, or the name of one that is open."""
    found: int | str = ""
    for number, value in walk.fields(message):
        if number == 1:
            found = whole(value)
        elif number == 2:
            found = text(value)[:100]
    if isinstance(found, int) and not 0 < found <= MAX_DIMENSION:
        return ""
    return found
