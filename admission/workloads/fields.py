"""Typed access to objects somebody else wrote.

    Json, key, path -> the value, or a RequestError that names the path

An absent key and `null` are the same, as they are to the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import Repr
from typing import Any

from admission.errors import RequestError
from admission.values import Json

MAX_COUNT = 1 << 20
_MAX_SHOWN = 60
_BRIEF = Repr()
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = 2 * _MAX_SHOWN
TEMPLATE_MARKS = ("$", "{{")


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

    A template that was not rendered (`$NUM_NODES`) counts as *default* too: the reading names it.
    """
    if value is None or is_template(value):
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise wrong(path, value, f"a whole number from 0 to {MAX_COUNT}")
    return value


def is_template(value: object) -> bool:
    """Return whether *value* still holds `$NAME` or `{{…}}`."""
    return isinstance(value, str) and any(mark in value for mark in TEMPLATE_MARKS)


def wrong(path: str, value: object, accepted: str) -> RequestError:
    """Return the error for a *value* at *path* that is not what is *accepted*."""
    try:
        shown = _BRIEF.repr(value)
    except ValueError:
        shown = "a number too long to show"
    if len(shown) > _MAX_SHOWN:
        shown = shown[: _MAX_SHOWN - 1] + "…"
    return RequestError(f"{path or 'object'}: {shown} is not {accepted}")
