"""Pieces of a word while it is read.

characters -> Building -> Word
"""

from __future__ import annotations

from dataclasses import dataclass, field

from admission.detect.words import Word


@dataclass(slots=True)
class Building:
    """The word being read."""

    text: list[str] = field(default_factory=list)
    length: int = 0
    unresolved: list[str] = field(default_factory=list)
    is_template: bool = False
    origin: str = ""
    is_started: bool = False
    is_plain: bool = True
    """Only unquoted literal characters so far."""
    has_equals: bool = False
    name: str | None = None
    """The name, once `NAME=` or `NAME+=` was read in front."""


def is_open(value: tuple[Word, ...]) -> bool:
    """Return whether a part of *value* is not known."""
    return any(word.unresolved for word in value)


def closing(text: str, start: int, opening: str, closing: str) -> int:
    """Return the index after the bracket that closes the one at *start*."""
    depth = 0
    quote = ""
    at = start
    while at < len(text):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == opening:
            depth += 1
        elif char == closing:
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    return len(text)
