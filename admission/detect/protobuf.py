"""Messages of Protocol Buffers, walked in place within limits.

    bytes -> fields, each a number or a part of the same bytes

Nothing is copied or unpacked: a field of two gigabytes that is not there is a problem, and what
nobody asks for is stepped over. Why no library: `onnx` brings NumPy and 37 MiB into the process
that answers reviews, and like `google.protobuf` it copies weights before they can be refused.
Source: protobuf.dev, "Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

Value = int | memoryview
Field = tuple[int, Value]
"""Number of the field, and what is in it: a whole number, or the bytes of all else."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT = 10
"""Bytes of 64 bits at seven bits a byte."""


class MessageError(ValueError):
    """The bytes are no such message; completes `REFERENCE …`."""


class Walk:
    """Reads messages until *most* fields were seen, those within others included."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._most = most

    def fields(self, message: memoryview) -> Iterator[Field]:
        """Yield the fields of *message*, in order.

        Raises:
            MessageError: at what is no message, or at one field too many.
        """
        position, end = 0, len(message)
        while position < end:
            self._count()
            tag, position = _varint(message, position)
            kind = tag & 7
            if kind == _VARINT:
                number, position = _varint(message, position)
                yield tag >> 3, number
                continue
            if kind == _BYTES:
                length, position = _varint(message, position)
            elif kind in (_FIXED64, _FIXED32):
                length = 8 if kind == _FIXED64 else 4
            else:
                raise MessageError("is broken: a field has no kind that is in use")
            if length > end - position:
                raise MessageError("is cut off: a field ends beyond it")
            yield tag >> 3, message[position : position + length]
            position += length

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise MessageError(f"has more than {self._most} fields")

    def numbers(self, value: Value) -> Iterator[int]:
        """Yield the whole numbers of a repeated field: one, or many that are packed."""
        if isinstance(value, int):
            yield signed(value)
            return
        position = 0
        while position < len(value):
            self._count()
            number, position = _varint(value, position)
            yield signed(number)


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    """Return the number at *position* and where it ends."""
    if position < len(message) and message[position] < 128:
        return message[position], position + 1  # most are: tags and lengths
    found = 0
    for index, byte in enumerate(message[position : position + _MAX_VARINT]):
        found |= (byte & 127) << 7 * index
        if byte < 128:
            return found & (1 << 64) - 1, position + index + 1
    raise MessageError("is broken or cut off: a number does not end")


def signed(value: int) -> int:
    """Return *value*, 64 bits, as a number with a sign."""
    return value - (1 << 64) if value >> 63 else value


def whole(value: Value) -> int:
    """Return a field that is one whole number."""
    if not isinstance(value, int):
        raise MessageError("is broken: a number is expected where bytes are")
    return signed(value)


def part(value: Value) -> memoryview:
    """Return the bytes of a field that is a message, a text or a fixed number."""
    if isinstance(value, int):
        raise MessageError("is broken: bytes are expected where a number is")
    return value


def text(value: Value, *, most: int = 1024) -> str:
    """Return a field that is a text of at most *most* bytes."""
    found = part(value)
    if len(found) > most:
        raise MessageError(f"has a name of more than {most} bytes")
    return bytes(found).decode("utf-8", "replace")


def real(value: Value) -> float:
    """Return a field that is a fraction of 32 bits."""
    found = part(value)
    if len(found) != 4:
        raise MessageError("is broken: a fraction is expected")
    number: float = struct.unpack("<f", found)[0]
    return number
