"""Who is looked at next: each key once, at its time, never two looks at one key at once.

    key, when -> key, when it is due

A look that fails waits longer each time. Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 300.0


@dataclass(slots=True)
class _Waiting:
    due: float
    failures: int = 0


@dataclass(order=True, slots=True)
class _Due:
    at: float
    key: str = field(compare=False)


class Line:
    """Keys that wait to be looked at."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        self._heap: list[_Due] = []
        self._busy: set[str] = set()
        self._again: dict[str, float] = {}
        """Keys that were added while they were being looked at."""
        self._failures: dict[str, int] = {}
        self._changed = asyncio.Event()

    @property
    def length(self) -> int:
        """Return how many keys are due or being looked at, those of later times aside."""
        now = self._clock()
        return sum(each.due <= now for each in list(self._waiting.values())) + len(self._busy)

    def add(self, key: str, *, after: float = 0.0) -> None:
        """Look at *key* in *after* seconds, or sooner if it waits for sooner already."""
        due = self._clock() + after
        if key in self._busy:
            self._again[key] = min(due, self._again.get(key, due))
            return
        waiting = self._waiting.get(key)
        if waiting is not None and waiting.due <= due:
            return
        self._waiting[key] = _Waiting(due)
        heapq.heappush(self._heap, _Due(due, key))
        self._changed.set()

    async def next(self) -> str:
        """Wait for a key that is due; nobody else gets it until `done` or `failed`."""
        while True:
            now = self._clock()
            while self._heap:
                first = self._heap[0]
                waiting = self._waiting.get(first.key)
                if waiting is None or waiting.due != first.at:
                    heapq.heappop(self._heap)  # it was asked for sooner since
                    continue
                if first.at > now:
                    break
                heapq.heappop(self._heap)
                del self._waiting[first.key]
                self._busy.add(first.key)
                return first.key
            pause = self._heap[0].at - now if self._heap else None
            self._changed.clear()
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def done(self, key: str, *, again: float | None = None) -> None:
        """End a look at *key*; look again in *again* seconds."""
        self._failures.pop(key, None)
        self._end(key)
        if again is not None:
            self.add(key, after=again)

    def failed(self, key: str) -> None:
        """End a look at *key* that came to nothing: look again, later each time."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        pause = min(FIRST_PAUSE_SECONDS * 2.0**failures, LONGEST_PAUSE_SECONDS)
        self._end(key, is_patient=True)
        self.add(key, after=pause * random.uniform(0.75, 1.25))  # noqa: S311 (no secret)

    def _end(self, key: str, *, is_patient: bool = False) -> None:
        self._busy.discard(key)
        due = self._again.pop(key, None)
        # What changed while a look failed does not make the next one come sooner.
        if due is not None and not is_patient:
            self.add(key, after=max(0.0, due - self._clock()))
