"""Whole numbers that a shell computes: `$((NODES * 8))`.

    expression, variables -> number | not known

Only `+ - * / %`, brackets, names and decimal numbers, each step bounded; anything else is not
known. As in bash, `/` and `%` go towards zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(r"\s*(?:(\d+)|\$?\{?([A-Za-z_]\w*)\}?|([-+*/%()]))")
_MAX_TOKENS = 100
_LIMIT = 1 << 62

Lookup = Callable[[str], str | None]
"""Variable -> its text, or None if that is not known."""


class _UnknownError(Exception):
    """The expression has no value that is known."""


def number_of(expression: str, lookup: Lookup) -> int | None:
    """Return the value of *expression*, or None if it is not known."""
    try:
        return _Sum(_tokens(expression, lookup)).value()
    except _UnknownError:
        return None


def _tokens(expression: str, lookup: Lookup) -> list[str]:
    found: list[str] = []
    text = expression.strip()
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or len(found) >= _MAX_TOKENS:
            raise _UnknownError
        number, name, operator = match.groups()
        if name is not None:
            number = lookup(name)
        if operator is None and (
            number is None or not re.fullmatch(r"-?(?:0|[1-9]\d{0,17})", number)
        ):
            raise _UnknownError
        found.append(operator or number or "")
        at = match.end()
    return found


class _Sum:
    """Reads tokens by the usual precedence. Used once."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def value(self) -> int:
        """Return the value of all tokens."""
        found = self._sum()
        if self._at < len(self._tokens):
            raise _UnknownError
        return found

    def _sum(self) -> int:
        found = self._product()
        while self._peek() in ("+", "-"):
            sign = self._take()
            other = self._product()
            found = _bounded(found + other if sign == "+" else found - other)
        return found

    def _product(self) -> int:
        found = self._item()
        while self._peek() in ("*", "/", "%"):
            operator = self._take()
            other = self._item()
            if operator == "*":
                found = _bounded(found * other)
                continue
            if not other:
                raise _UnknownError
            quotient = abs(found) // abs(other) * (1 if (found < 0) == (other < 0) else -1)
            found = quotient if operator == "/" else found - quotient * other
        return found

    def _item(self) -> int:
        token = self._take()
        if token in ("-", "+"):
            return -self._item() if token == "-" else self._item()
        if token == "(":
            found = self._sum()
            if self._take() != ")":
                raise _UnknownError
            return found
        if token in (")", "*", "/", "%", ""):
            raise _UnknownError
        return int(token)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._at += 1
        return token


def _bounded(number: int) -> int:
    if abs(number) > _LIMIT:
        raise _UnknownError
    return number
