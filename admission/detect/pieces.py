"""Pieces of a word while it is read.

characters -> Building -> Word
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from admission.detect.words import Word

_SPECIAL = {"(": re.compile(r"[\\'\"()]"), "{": re.compile(r"[\\'\"{}]")}
"""Opening bracket -> the characters that matter up to the one that closes it."""


@dataclass(slots=True)
class Building:
    """The word being read."""

    text: list[str] = field(default_factory=list)
    length: int = 0
    unresolved: list[str] = field(default_factory=list)
    is_template: bool = False
    assumed: tuple[str, ...] = ()
    origin: str = ""
    num_values: int = 0
    """Of variables in it."""
    value_length: int = 0
    """Of the last of them."""
    is_started: bool = False
    is_plain: bool = True
    """Only unquoted literal characters so far."""
    has_equals: bool = False
    name: str | None = None
    """The name, once `NAME=` or `NAME+=` was read in front."""

    @property
    def is_mixed(self) -> bool:
        """Return whether it is more than the value of one variable, be it with a flag before it."""
        is_whole = self.value_length == self.length
        return self.num_values > 1 or (
            self.num_values == 1 and not is_whole and any(" " in text for text in self.text)
        )


def is_open(value: tuple[Word, ...]) -> bool:
    """Return whether a part of *value* is not known."""
    return any(word.unresolved for word in value)


def split_text(word: Word) -> list[str]:
    """Return the texts that blanks separate in *word*; those in what is not resolved do not."""
    if not word.unresolved:
        return word.text.split()
    references = sorted(word.unresolved, key=len, reverse=True)
    pattern = "|".join((*map(re.escape, references), r"\s+"))
    found = [""]
    at = 0
    for match in re.finditer(pattern, word.text):
        found[-1] += word.text[at : match.start()]
        at = match.end()
        if not match.group().isspace():
            found[-1] += match.group()
        elif found[-1]:
            found.append("")
    found[-1] += word.text[at:]
    return found if found[-1] or len(found) == 1 else found[:-1]


def closing(text: str, start: int, opening: str, closing: str, *, quotes: str = "'\"") -> int:
    """Return the index after the bracket that closes the one at *start*.

    *quotes* are the characters that quote here: inside double quotes, `'` is none.
    """
    special = _SPECIAL[opening]
    depth = 0
    quote = ""
    at = start
    while match := special.search(text, at):
        char, at = match.group(), match.end()
        if char == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in quotes:
            quote = char
        elif char == opening:
            depth += 1
        elif char == closing:
            depth -= 1
            if not depth:
                return at
    return len(text)
