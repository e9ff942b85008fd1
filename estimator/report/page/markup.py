"""HTML in which every text is escaped.

    text, elements -> Markup

Only what `element` made is markup; every other string is somebody's text, and hostile.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape
from typing import TypeAlias

import orjson

MAX_TEXT = 600
MAX_MARKS = 2
"""Accents that may follow each other on one letter: more would cover the lines above."""
REPLACED = "\N{REPLACEMENT CHARACTER}"
VOID = frozenset({"meta", "link", "input", "br"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Content: TypeAlias = "str | Iterable[Content] | None"
Value: TypeAlias = "str | int | float | bool | None"


def element(tag: str, *content: Content, **attributes: Value) -> Markup:
    """Return the element *tag* with escaped *content* and *attributes*.

    An underscore in an attribute's name is a hyphen, one at its end is dropped. Markup as a value
    stays as it is, True is an attribute without a value, False and None are none.
    """
    found = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in VOID:
        return Markup(f"<{tag}{found}>")
    return Markup(f"<{tag}{found}>{joined(*content)}</{tag}>")


def joined(*content: Content) -> Markup:
    """Return *content* one after the other, what is no markup escaped."""
    return Markup("".join(_pieces(content)))


def shown(text: str, *, limit: int = MAX_TEXT) -> str:
    """Return *text* on one line with nothing invisible in it, at most *limit* long.

    Characters of control and format, among them those that turn the direction of text around, are
    replaced where they stand: two names that differ only in them look different.
    """
    kept: list[str] = []
    num_marks = 0
    for character in text[: 4 * limit]:
        category = unicodedata.category(character)
        num_marks = num_marks + 1 if category in ("Mn", "Me") else 0
        if category in ("Zl", "Zp") or character in "\t\n\r":
            kept.append(" ")
        elif category.startswith("C"):
            kept.append(REPLACED)
        elif num_marks <= MAX_MARKS:
            kept.append(character)
    line = " ".join("".join(kept).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def data(value: object) -> Markup:
    """Return *value* as JSON that can stand within a script element.

    What could end the element or begin a comment is written as an escape of JSON.
    """
    text = orjson.dumps(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _pieces(content: Iterable[Content]) -> Iterable[str]:
    for each in content:
        if each is None:
            continue
        if isinstance(each, Markup):
            yield each
        elif isinstance(each, str):
            yield escape(shown(each))
        else:
            yield from _pieces(each)


def _attribute(name: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    attribute = name.removesuffix("_").replace("_", "-")
    if value is True:
        return f" {attribute}"
    if isinstance(value, Markup):
        text = str(value)
    else:
        text = escape(shown(value)) if isinstance(value, str) else f"{value:.10g}"
    return f' {attribute}="{text}"'
