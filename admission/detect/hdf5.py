"""Texts at the root of an HDF5 file: what Keras writes there beside the weights.

    bytes, names -> attribute -> text

Object headers, attributes in them and the heap of long texts are read, and nothing else: no group
below the root, no data set, no filter. Why no library: h5py brings NumPy and a C library that
walks what strangers send, in the process that answers reviews; here a pointer is a place in the
bytes or a problem. Attributes in dense storage are not read: Keras writes too few for that.
Source: "HDF5 File Format Specification Version 3.0", sections II.A, III.E, IV.A.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

MAX_MESSAGES = 4096
"""Of the root's object header. Keras writes about ten."""
MAX_OBJECTS = 65_536
"""Of one heap of long texts: its numbers have 16 bits."""

_ATTRIBUTE, _CONTINUATION, _ATTRIBUTE_INFO = 0x0C, 0x10, 0x15
_SHARED = 2
_TEXT, _VARIABLE = 3, 9
"""Classes of data types."""


class Hdf5Error(ValueError):
    """The file cannot be read; completes `REFERENCE …`."""


@dataclass(slots=True)
class _File:
    """The bytes, and how wide its addresses and lengths are."""

    content: memoryview
    offsets: int = 8
    lengths: int = 8
    base: int = 0
    seen: set[int] = field(default_factory=set)
    """Blocks of headers that were walked: none twice."""
    num_messages: int = 0

    def part(self, start: int, length: int) -> memoryview:
        """Return *length* bytes from *start*.

        Raises:
            Hdf5Error: if they are not all there.
        """
        if start < 0 or start + length > len(self.content):
            raise Hdf5Error("is an HDF5 file that is cut off, or longer than what is read of it")
        return self.content[start : start + length]

    def number(self, start: int, length: int) -> int:
        """Return the number of *length* bytes at *start*."""
        return int.from_bytes(self.part(start, length), "little")

    def address(self, start: int) -> int:
        """Return the place in the file that the address at *start* leads to."""
        return self.base + self.number(start, self.offsets)


def root_texts(content: bytes, names: Collection[str], *, most: int) -> dict[str, str]:
    """Return those attributes *names* of the root group that are there, as texts.

    Raises:
        Hdf5Error: if the file is broken, or one is no text of at most *most* bytes.
    """
    file = _File(memoryview(content))
    found: dict[str, str] = {}
    for kind, message in _messages(file, _root(file)):
        if kind == _ATTRIBUTE_INFO and _is_dense(file, message):
            raise Hdf5Error("is an HDF5 file whose attributes are in dense storage")
        if kind == _ATTRIBUTE:
            name, value = _attribute(file, message, names, most)
            if name in names:
                found[name] = value
    return found


def _root(file: _File) -> int:
    """Return where the object header of the root group is."""
    version = file.number(8, 1)
    sizes = 13 if version < 2 else 9
    if version > 3:
        raise Hdf5Error(f"is an HDF5 file of version {version}, which is not read")
    file.offsets, file.lengths = file.number(sizes, 1), file.number(sizes + 1, 1)
    if file.offsets not in (2, 4, 8) or file.lengths not in (2, 4, 8):
        raise Hdf5Error("is a broken HDF5 file: its addresses have no width that is in use")
    start = {0: 24, 1: 28}.get(version, 12)
    base = file.number(start, file.offsets)
    # Base, free space, end, driver and the name of the root in version 0; one fewer later.
    place = start + (5 if version < 2 else 3) * file.offsets
    file.base = base
    return file.address(place)


def _messages(file: _File, start: int) -> Iterator[tuple[int, memoryview]]:
    """Yield kind and bytes of the messages of the object header at *start*."""
    if bytes(file.part(start, 4)) != b"OHDR":
        size = file.number(start + 8, 4)
        yield from _blocks(file, start + 16, size, prefix=8)
        return
    flags = file.number(start + 5, 1)
    place = start + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    prefix = 6 if flags & 4 else 4
    yield from _blocks(file, place + width, file.number(place, width), prefix=prefix)


def _blocks(file: _File, start: int, size: int, *, prefix: int) -> Iterator[tuple[int, memoryview]]:
    """Yield the messages of a block and of those it goes on in. *prefix*: bytes before each."""
    is_old = prefix == 8
    blocks = [(start, size)]
    while blocks:
        start, size = blocks.pop()
        if start in file.seen:
            raise Hdf5Error("is a broken HDF5 file: its header leads back to itself")
        file.seen.add(start)
        end = start + size
        while start + prefix <= end:
            kind = file.number(start, 2 if is_old else 1)
            length = file.number(start + (2 if is_old else 1), 2)
            flags = file.number(start + (4 if is_old else 3), 1)
            message = file.part(start + prefix, length)
            start += prefix + length
            file.num_messages += 1
            if file.num_messages > MAX_MESSAGES:
                raise Hdf5Error(f"is an HDF5 file of more than {MAX_MESSAGES} header messages")
            if kind == _CONTINUATION:
                blocks.append(_continued(file, message, is_old=is_old))
            elif not flags & _SHARED:
                yield kind, message


def _continued(file: _File, message: memoryview, *, is_old: bool) -> tuple[int, int]:
    """Return where the header goes on, without the signature and checksum of newer ones."""
    inner = _File(message, file.offsets, file.lengths)
    start = file.base + inner.number(0, file.offsets)
    length = inner.number(file.offsets, file.lengths)
    return (start, length) if is_old else (start + 4, length - 8)


def _is_dense(file: _File, message: memoryview) -> bool:
    inner = _File(message, file.offsets, file.lengths)
    start = 4 if inner.number(1, 1) & 1 else 2
    return inner.number(start, file.offsets) != (1 << 8 * file.offsets) - 1


def _attribute(
    file: _File, message: memoryview, names: Collection[str], most: int
) -> tuple[str, str]:
    """Return name and text of an attribute; an empty text if it is none of *names*."""
    inner = _File(message, file.offsets, file.lengths)
    version = inner.number(0, 1)
    if version not in (1, 2, 3):
        return "", ""
    sizes = [inner.number(place, 2) for place in (2, 4, 6)]
    start = 9 if version == 3 else 8
    parts = []
    for size in sizes:
        parts.append(inner.part(start, size))
        start += -(-size // 8) * 8 if version == 1 else size
    name = bytes(parts[0]).rstrip(b"\0").decode("utf-8", "replace")
    if name not in names:
        return name, ""
    kind = _File(parts[1])
    data = _File(inner.part(start, len(message) - start), file.offsets, file.lengths)
    described = kind.number(0, 1) & 15
    if version > 1 and inner.number(1, 1) & 1:
        described = -1  # a type that is kept elsewhere
    if described == _TEXT:
        length = kind.number(4, 4)
        content = data.part(0, _at_most(length, most, name))
    elif described == _VARIABLE and kind.number(1, 1) & 15 == 1:
        length = _at_most(data.number(0, 4), most, name)
        place = file.base + data.number(4, file.offsets)
        content = _of_heap(file, place, data.number(4 + file.offsets, 4))[:length]
    else:
        raise Hdf5Error(f"is an HDF5 file whose {name} is no text")
    try:
        return name, bytes(content).rstrip(b"\0").decode("utf-8")
    except UnicodeDecodeError as error:
        raise Hdf5Error(f"is an HDF5 file whose {name} is no text") from error


def _at_most(length: int, most: int, name: str) -> int:
    if length > most:
        raise Hdf5Error(f"is an HDF5 file whose {name} is longer than {most} bytes")
    return length


def _of_heap(file: _File, start: int, wanted: int) -> memoryview:
    """Return object number *wanted* of the global heap collection at *start*."""
    if bytes(file.part(start, 4)) != b"GCOL":
        raise Hdf5Error("is a broken HDF5 file: a text is not where it should be")
    end = start + file.number(start + 8, file.lengths)
    place = start + 8 + file.lengths
    for _ in range(MAX_OBJECTS):
        if place + 8 + file.lengths > end:
            break
        number, size = file.number(place, 2), file.number(place + 8, file.lengths)
        if number == wanted:
            return file.part(place + 8 + file.lengths, size)
        if number == 0:
            break
        place += 8 + file.lengths + -(-size // 8) * 8
    raise Hdf5Error("is a broken HDF5 file: a text is not where it should be")
