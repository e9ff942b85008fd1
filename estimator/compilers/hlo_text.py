"""The text of an HLO module, line by line.

text -> computations, their lines, what is written over what

Source: the grammar of openxla/xla@4336d12e xla/hlo/parser/hlo_parser.cc.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from estimator.errors import TraceError

ITEM_BITS = {
    "pred": 8,
    "token": 0,
    "opaque": 0,
    "s4": 4,
    "u4": 4,
    "c64": 64,
    "c128": 128,
}
"""Bits of an element whose name does not tell them."""

_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{\s*$")
_NAME = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = ")
_ARRAY = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")
_OPERAND = re.compile(r"%?([\w.\-]+)(?=[,)]|$)")
_ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}")
_COMMENT = re.compile(r"/\*.*?\*/")


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction."""

    name: str
    shape: str
    operator: str
    operands: tuple[str, ...]
    rest: str
    is_root: bool


def read_hlo(text: str) -> tuple[Mapping[str, list[Line]], str, dict[int, int]]:
    """Return the computations of a module, the name of its entry, and its aliases.

    Raises:
        TraceError: if *text* is not the text of a module.
    """
    computations: dict[str, list[Line]] = {}
    lines: list[Line] = []
    entry = ""
    for line in text.splitlines():
        if not line.startswith(" "):
            head = _HEAD.match(line)
            if head is not None and not line.startswith("HloModule"):
                lines = computations[head[2]] = []
                entry = head[2] if head[1] else entry
            continue
        parsed = _line(line)
        if parsed is not None:
            lines.append(parsed)
    if not entry:
        raise TraceError("not the text of an HLO module")
    first = text[: text.find("\n")]
    start = first.find("input_output_alias={")
    section = first[start : first.find("entry_computation_layout", start)] if start >= 0 else ""
    aliases = {int(result or 0): int(number) for result, number in _ALIAS.findall(section)}
    return computations, entry, aliases


def _line(line: str) -> Line | None:
    name = _NAME.match(line)
    if name is None:
        return None
    rest = _COMMENT.sub("", line[name.end() :]) if "/*" in line else line[name.end() :]
    end = _closing(rest, 0) + 1 if rest.startswith("(") else rest.find(" ")
    shape, rest = rest[:end], rest[end:].lstrip()
    opening = rest.find("(")
    closing = _closing(rest, opening)
    operator, inside = rest[:opening], rest[opening + 1 : closing]
    operands = () if operator in ("constant", "iota") else tuple(_OPERAND.findall(inside + ")"))
    return Line(
        name=name[2],
        shape=shape,
        operator=operator,
        operands=operands,
        rest=f"{inside if not operands else ''}{rest[closing + 1 :]}",
        is_root=name[1] is not None,
    )


def _closing(text: str, opening: int) -> int:
    depth = 0
    for index in range(opening, len(text)):
        if text[index] == "(":
            depth += 1
        elif text[index] == ")":
            depth -= 1
            if depth == 0:
                return index
    return len(text)


def size_of(shape: str) -> tuple[int, int]:
    """Return the bytes and the elements of *shape*, a tuple's those of its parts."""
    nbytes = elements = 0
    for kind, dims in _ARRAY.findall(shape):
        count = 1
        for size in dims.split(",") if dims else ():
            count *= int(size)
        found = re.search(r"\d+", kind)
        bits = ITEM_BITS.get(kind) if kind in ITEM_BITS else int(found[0]) if found else 32
        nbytes += -(-count * (bits or 0) // 8)
        elements += count
    return nbytes, elements
