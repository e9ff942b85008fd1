"""Typed access to objects somebody else wrote.

    Json, key, path -> the value, or a RequestError that names the path

An absent key and `null` are the same, as they are to the API server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from reprlib import Repr
from typing import Any

from admission.errors import RequestError
from admission.values import Json

MAX_COUNT = 1 << 20
_MAX_SHOWN = 60
_BRIEF = Repr()
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = 2 * _MAX_SHOWN
TEMPLATE_MARKS = ("$", "{{")
_PLACEHOLDER = re.compile(r"<[^<>]+>|_*[A-Z][A-Z0-9_-]{2,}")
"""What people leave where a number goes: `<gpus>`, `NUM_NODES`, `PLACEHOLDER_GPUS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A number of things; one that was left for somebody to fill in stands for at least one."""

    number: int
    is_known: bool = True

    def times(self, other: Amount) -> Amount:
        """Return the product; none is none, whatever the other may be."""
        return Amount(
            number=self.number * other.number,
            is_known=(self.is_known and other.is_known) or NONE in (self, other),
        )


NONE = Amount(number=0)
ONE = Amount(number=1)


def mapping(value: object, path: str) -> Json:
    """Return *value* as a mapping with string keys; `null` is the empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not {type(key) for key in value} <= {str}:
        raise wrong(path, value, "a mapping")
    return value


def sequence(value: object, path: str) -> tuple[Any, ...]:
    """Return *value* as a tuple; `null` is the empty one."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise wrong(path, value, "a list")
    return tuple(value)


def text(value: object, path: str) -> str:
    """Return *value* as a string; `null` is the empty one."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise wrong(path, value, "a string")
    return value


def count(value: object, path: str, *, default: int) -> int:
    """Return *value* as a whole number of things; `null` is *default*.

    A number that was not filled in (`$NUM_NODES`, `NUM_NODES`) counts as *default* too.
    """
    if value is None or is_unrendered(value):
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise wrong(path, value, f"a whole number from 0 to {MAX_COUNT}")
    return value


def part(value: object) -> Json:
    """Return *value* if it is a mapping with string keys, else the empty one.

    With `parts`, `word`, `words_of` and `number` for objects that are there already: of a pod or a
    node that others wrote, one odd field must cost nothing but itself.
    """
    if isinstance(value, Mapping) and all(type(key) is str for key in value):
        return value
    return {}


def parts(value: object) -> tuple[Json, ...]:
    """Return the mappings in *value*, none if it is no list."""
    items = value if isinstance(value, list | tuple) else ()
    return tuple(item for item in items if isinstance(item, Mapping))


def words_of(value: object) -> Mapping[str, str]:
    """Return what of *value* has a text, as labels and annotations have; nothing of no mapping."""
    return {key: item for key, item in part(value).items() if isinstance(item, str)}


def word(value: object) -> str:
    """Return *value* if it is a text, else the empty one."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int:
    """Return *value* if it is a whole number of things, else 0."""
    return value if type(value) is int and 0 <= value < 1 << 63 else 0


def amount(value: object, path: str, *, default: int = 1) -> Amount:
    """Return *value* as `count` does, with whether it is known."""
    number = count(value, path, default=default)
    if is_unrendered(value):
        return Amount(number=max(1, number), is_known=False)
    return Amount(number=number)


def entries(value: object, path: str) -> Iterator[tuple[Json, str]]:
    """Yield the mappings in the list *value*, each with its path."""
    for index, item in enumerate(sequence(value, path)):
        where = f"{path}[{index}]"
        yield mapping(item, where), where


def at(fields: Json, path: str, *keys: str) -> Json:
    """Return the mapping below *fields*, found at *path*, that *keys* lead to."""
    for key in keys:
        path = f"{path}.{key}" if path and not path.endswith(": ") else f"{path}{key}"
        fields = mapping(fields.get(key), path)
    return fields


def is_template(value: object) -> bool:
    """Return whether *value* still holds `$NAME` or `{{…}}`."""
    return isinstance(value, str) and any(mark in value for mark in TEMPLATE_MARKS)


def is_unrendered(value: object) -> bool:
    """Return whether *value* stands where a number goes and was left to be filled in."""
    return is_template(value) or (
        isinstance(value, str) and _PLACEHOLDER.fullmatch(value.strip()) is not None
    )


def wrong(path: str, value: object, accepted: str) -> RequestError:
    """Return the error for a *value* at *path* that is not what is *accepted*."""
    try:
        shown = _BRIEF.repr(value)
    except ValueError:
        shown = "a number too long to show"
    if len(shown) > _MAX_SHOWN:
        shown = shown[: _MAX_SHOWN - 1] + "…"
    return RequestError(f"{path or 'object'}: {shown} is not {accepted}")
