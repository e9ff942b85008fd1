"""Typed access to the attributes of a symbol's node, which are texts.

    {"kernel": "(3, 3)"} -> attributes.integers("kernel")

Numbers are parsed by hand: nothing of a symbol is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from estimator.frontends.mxnet.errors import invalid

MAX_TEXT = 4096
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}[lL]?")
_NONE = ("None", "", "()", "[]")
MOST_TEXTS = 1024
"""Texts whose numbers are remembered: the layers of a model share a few."""


class Attributes:
    """The attributes of one node."""

    __slots__ = ("name", "values")

    def __init__(self, name: str, values: Mapping[str, str]) -> None:
        self.name = name
        self.values = values

    def text(self, key: str, default: str = "") -> str:
        """Return an attribute as written."""
        return self.values.get(key, default)

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a truth value; MXNet writes `True`, `true` or `1`."""
        value = self.values.get(key)
        return default if value is None else value.lower() in ("true", "1")

    def integer(self, key: str, default: int | None = None) -> int:
        """Return a whole number.

        Raises:
            SpecError: if there is none and no default.
        """
        value = self.optional_integer(key)
        if value is not None:
            return value
        if default is None:
            raise self._wrong(key, "a whole number")
        return default

    def optional_integer(self, key: str) -> int | None:
        """Return a whole number, or None where it is absent or `None`."""
        value = self.values.get(key)
        if value is None or value in _NONE:
            return None
        if not _INTEGER.fullmatch(value.strip()):
            raise self._wrong(key, "a whole number")
        return int(value.strip().rstrip("lL"))

    def number(self, key: str, default: float) -> float:
        """Return a number."""
        value = self.values.get(key)
        if value is None or value in _NONE:
            return default
        try:
            return float(value)
        except ValueError as error:
            raise self._wrong(key, "a number") from error

    def integers(self, key: str, count: int = 0, default: int = 0) -> tuple[int, ...]:
        """Return a tuple of whole numbers: *count* times *default* where it is absent."""
        found = self.optional_integers(key)
        if found is None:
            return (default,) * count
        if any(each is None for each in found):
            raise self._wrong(key, "whole numbers")
        values = tuple(each or 0 for each in found)
        return values * count if len(values) == 1 and count else values

    def optional_integers(self, key: str) -> tuple[int | None, ...] | None:
        """Return a tuple in which single places may be None; None where it is absent."""
        value = self.values.get(key)
        if value is None or value.strip() in _NONE:
            return None
        if len(value) > MAX_TEXT:
            raise self._wrong(key[:64], f"at most {MAX_TEXT} characters")
        try:
            return _integers_in(value)
        except ValueError as error:
            raise self._wrong(key, "whole numbers") from error

    def _wrong(self, key: str, accepted: str) -> Exception:
        seen = self.values.get(key)
        shown = "is missing" if seen is None else f"is '{seen[:64]}'"
        return invalid(f"attribute '{key}' of node '{self.name[:128]}' {shown}; takes {accepted}")


@lru_cache(maxsize=MOST_TEXTS)
def _integers_in(text: str) -> tuple[int | None, ...]:
    """Return the whole numbers of a tuple as written; a place may be None.

    Raises:
        ValueError: if a place is neither.
    """
    pieces = [piece.strip() for piece in text.strip().strip("()[]").split(",")]
    return tuple(_place(piece) for piece in pieces if piece)


def _place(piece: str) -> int | None:
    if piece == "None":
        return None
    if not _INTEGER.fullmatch(piece):
        raise ValueError(piece)
    return int(piece.rstrip("lL"))
