"""Decisions made by bytes: where they end, every further decision is the first of its kind.

    bytes -> numbers, picks, texts

So a fuzzer that changes a byte changes one decision, and the inputs need no format of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """A row of bytes that is used up."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_over(self) -> bool:
        """Return whether nothing is left to decide by."""
        return self._at >= len(self._data)

    def byte(self) -> int:
        """Return the next byte, 0 at the end."""
        if self.is_over:
            return 0
        self._at += 1
        return self._data[self._at - 1]

    def below(self, limit: int) -> int:
        """Return a number from 0 to *limit* - 1."""
        number = self.byte()
        if limit > 256:
            number = number << 8 | self.byte()
        return number % max(1, limit)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of *items*."""
        return items[self.below(len(items))]

    def chance(self, one_in: int) -> bool:
        """Return whether the next byte is one of those that say so; never once they are over."""
        return not self.is_over and self.byte() % one_in == 1

    def rest(self, limit: int = 400) -> bytes:
        """Return up to *limit* bytes as they are."""
        part = self._data[self._at : self._at + limit]
        self._at += len(part)
        return part

    def text(self, limit: int = 60) -> str:
        """Return some of the bytes as text."""
        return self.rest(self.below(limit) + 1).decode("utf-8", "replace")
