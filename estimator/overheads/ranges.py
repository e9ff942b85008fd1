"""A figure that is not known exactly.

low, expected, high -> Range
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from estimator.units import MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Bytes: the least and most the sources allow, and the one value to expect."""

    low: int
    expected: int
    high: int

    def __add__(self, other: Range) -> Range:
        """Return the sum, as if both were at the same end at once."""
        return Range(
            low=self.low + other.low,
            expected=self.expected + other.expected,
            high=self.high + other.high,
        )

    def __mul__(self, count: int) -> Range:
        """Return *count* of it."""
        return Range(low=self.low * count, expected=self.expected * count, high=self.high * count)


NOTHING = Range(low=0, expected=0, high=0)


def mib(low: int, expected: int, high: int) -> Range:
    """Return a range given in MiB, as the sources print it."""
    return Range(low=low * MIB, expected=expected * MIB, high=high * MIB)


def span(ranges: Iterable[Range], *, expected: int | None = None) -> Range:
    """Return the range over all *ranges* (at least one), expecting *expected* or their mean."""
    every = tuple(ranges)
    mean = sum(each.expected for each in every) // len(every)
    return Range(
        low=min(each.low for each in every),
        expected=mean if expected is None else expected,
        high=max(each.high for each in every),
    )
