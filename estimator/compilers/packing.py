"""How large an arena is that holds every value at a place of its own.

    (size, first moment, last moment) of each value -> bytes

XLA places the largest value first, each in the smallest hole that holds it for its whole life, and
tries a second order, the longest-lived first; the better of the two stands.
Source: openxla/xla@4336d12e xla/service/heap_simulator/heap_simulator.cc
(`GlobalDecreasingSizeBestFitHeap`), xla/service/buffer_assignment.cc (`kSpatial`, `kTemporal`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Value = tuple[int, int, int]
"""Size, first and last moment."""
SMALL = 2000
"""Values under this part of the live peak are summed, not placed."""


def packed(values: Sequence[Value]) -> int:
    """Return the bytes of the arena for *values*."""
    peak = live_peak(values)
    large = [value for value in values if value[0] * SMALL > peak]
    small = [value for value in values if 0 < value[0] * SMALL <= peak]
    orders: tuple[Callable[[Value], tuple[int, ...]], ...] = (
        lambda value: (-value[0], value[1] - value[2], value[1]),
        lambda value: (value[1] - value[2], -value[0], value[1]),
    )
    return min(_placed(sorted(large, key=order)) for order in orders) + live_peak(small)


def live_peak(values: Sequence[Value]) -> int:
    """Return the most that is alive at once."""
    changes: dict[int, int] = {}
    for size, first, last in values:
        changes[first] = changes.get(first, 0) + size
        changes[last + 1] = changes.get(last + 1, 0) - size
    alive = most = 0
    for moment in sorted(changes):
        alive += changes[moment]
        most = max(most, alive)
    return most


def _placed(values: Sequence[Value]) -> int:
    """Return the top of the arena after each of *values* took the best hole, in order."""
    chunks: list[tuple[int, int, int, int]] = []  # offset, end, first, last
    top = 0
    for size, first, last in values:
        around = sorted(
            (offset, end)
            for offset, end, begins, ends in chunks
            if begins <= last and first <= ends
        )
        best: tuple[int, int] | None = None
        reached = 0
        for offset, end in around:
            hole = offset - reached
            if hole >= size and (best is None or hole < best[0]):
                best = hole, reached
            reached = max(reached, end)
        place = reached if best is None else best[1]
        chunks.append((place, place + size, first, last))
        top = max(top, place + size)
    return top
