"""A figure that is not known exactly.

low, expected, high -> Range
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from estimator.units import MIB

ENOUGH_READINGS = 8
"""From so many readings on, their 10 and 90 % points are the ends (assumed)."""
FEW_READINGS_WIDTH = 0.2
"""With fewer, the ends are the extreme readings and at least 20 % off (assumed)."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Where the readings of one quantity lie, in whatever unit they have."""

    low: float
    expected: float
    high: float


NOTHING = Range(low=0, expected=0, high=0)


def mib(low: float, expected: float, high: float) -> Range:
    """Return a range given in MiB, as the sources print it."""
    return Range(low=round(low * MIB), expected=round(expected * MIB), high=round(high * MIB))


def span(ranges: Iterable[Range], *, expected: int | None = None) -> Range:
    """Return the range over all *ranges* (at least one), expecting *expected* or their mean."""
    every = tuple(ranges)
    mean = sum(each.expected for each in every) // len(every)
    return Range(
        low=min(each.low for each in every),
        expected=mean if expected is None else expected,
        high=max(each.high for each in every),
    )


def spread(readings: Sequence[Spread]) -> Spread:
    """Return where *readings* lie: their median, and their 10 and 90 % points.

    With fewer than `ENOUGH_READINGS` the ends are the extremes, and at least
    `FEW_READINGS_WIDTH` of the median away from it.
    """
    middle = median(each.expected for each in readings)
    if len(readings) < ENOUGH_READINGS:
        return Spread(
            low=min(middle * (1 - FEW_READINGS_WIDTH), *(each.low for each in readings)),
            expected=middle,
            high=max(middle * (1 + FEW_READINGS_WIDTH), *(each.high for each in readings)),
        )
    tenths = quantiles((each.expected for each in readings), n=10, method="inclusive")
    return Spread(low=tenths[0], expected=middle, high=tenths[-1])
