"""Put what TensorFlow's profiler wrote down, a line a thread, into the order the allocator saw.

lines of records -> one list of records, or NoOrderError

Every record is written under the allocator's lock, after its totals have changed, and a thread
keeps its own in order: they are right, one by one and line by line. The times they bear are of
the wall clock, which may be set back, and two may be equal, so times only say what to try first.
What decides is that each record's total follows from the one before it, and that no address is
given out while it is in use or given back while it is not.

Source: tensorflow/tensorflow@0d7247fd990b8821f3f6e9df135804d5329ff0e5
third_party/xla/xla/tsl/framework/bfc_allocator.cc (`AddTraceMe`, `AllocateRawInternal`,
`DeallocateRawInternal`), third_party/xla/xla/tsl/profiler/backends/cpu/traceme_recorder.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Record = dict[str, Any]
Lines = Sequence[Sequence[Record]]


class NoOrderError(Exception):
    """No order of the records is one an allocator could have seen: some are missing."""


def change(record: Record) -> int:
    """Return by how many bytes *record* changes the total."""
    size = abs(int(record["allocation_bytes"]))
    return -size if record["is_free"] else size


def in_order(lines: Lines, *, begins_empty: bool = True) -> list[Record]:
    """Return the records of all *lines* in the allocator's order.

    Of several that hold, the one the clock agrees with first. *begins_empty*: nothing was in use
    before; else the first record says how much was, and addresses not seen yet may be of it.

    Raises:
        NoOrderError: if there is none.
    """
    deepest = 0
    for total in [0] if begins_empty else _totals_before(lines):
        search = _Search(lines, total, elsewhere=False if begins_empty else None)
        if search.run():
            return [record for record, _, _ in search.taken]
        deepest = max(deepest, search.deepest)
    count = sum(len(line) for line in lines)
    raise NoOrderError(f"after {deepest} of {count} records none of the rest can be the next")


def _totals_before(lines: Lines) -> list[int]:
    """Return what may have been in use before the first record, the likeliest first."""
    heads = sorted((line[0] for line in lines if line), key=_time)
    totals = [int(head["bytes_allocated"]) - change(head) for head in heads]
    return list(dict.fromkeys(total for total in totals if total >= 0)) or [0]


def _time(record: Record) -> int:
    time: int = record["time"]
    return time


class _Search:
    """A walk through the lines, one record at a time, with steps back where it cannot go on."""

    def __init__(self, lines: Lines, total: int, *, elsewhere: bool | None) -> None:
        self.lines = lines
        self.total = total
        self.taken: list[tuple[Record, int, bool | None]] = []
        """Record, its line, and whether its address was in use before; None: not known."""
        self.deepest = 0
        self._places = [0] * len(lines)
        self._in_use: dict[int, bool] = {}
        self._elsewhere = elsewhere
        """Whether addresses that no record named yet are in use; None: it is not known."""
        self._seen: set[tuple[int, ...]] = set()
        """Places from which all was tried: totals and addresses follow from the places alone."""

    def run(self) -> bool:
        """Return whether an order was found; it is in `taken`."""
        count = sum(len(line) for line in self.lines)
        choices = [self._next()]
        while len(self.taken) < count:
            if choices[-1]:
                self._take(choices[-1].pop())
                choices.append(self._next())
                continue
            choices.pop()
            if not self.taken:
                return False
            self._put_back()
        return True

    def _next(self) -> list[int]:
        """Return the lines whose next record can follow, the earliest last."""
        places = tuple(self._places)
        if places in self._seen:
            return []
        self._seen.add(places)
        heads = [
            (_time(line[place]), number)
            for number, (line, place) in enumerate(zip(self.lines, places, strict=True))
            if place < len(line) and self._follows(line[place])
        ]
        return [number for _, number in sorted(heads, reverse=True)]

    def _follows(self, record: Record) -> bool:
        if self.total + change(record) != record["bytes_allocated"]:
            return False
        in_use = self._in_use.get(record["addr"], self._elsewhere)
        return in_use is None or in_use == record["is_free"]

    def _take(self, number: int) -> None:
        record = self.lines[number][self._places[number]]
        self._places[number] += 1
        self.total += change(record)
        self.taken.append((record, number, self._in_use.get(record["addr"])))
        self._in_use[record["addr"]] = not record["is_free"]
        self.deepest = max(self.deepest, len(self.taken))

    def _put_back(self) -> None:
        record, number, in_use = self.taken.pop()
        self._places[number] -= 1
        self.total -= change(record)
        if in_use is None:
            del self._in_use[record["addr"]]
        else:
            self._in_use[record["addr"]] = in_use
