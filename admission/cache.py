"""Remember answers, the least recently used forgotten first.

    key -> value or failure, for as long as it is worth

Not for several threads: it belongs to the event loop.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    EstimatorUnavailableError,
    MemoryLimitError,
    TraceError,
)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class CacheResult(StrEnum):
    """Where the answers to one question came from."""

    HIT = "hit"
    """All of them were remembered."""
    JOINED = "joined"
    """Another review had asked already and the answer was on its way."""
    PARTIAL = "partial"
    """Some of the cards were remembered."""
    MISS = "miss"


@dataclass(frozen=True, slots=True)
class _Entry(Generic[V]):
    value: V
    expires: float


class Cache(Generic[K, V]):
    """At most *entries* values; each for ever or for a time of its own."""

    def __init__(self, *, entries: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries = entries
        self._clock = clock
        self._kept: OrderedDict[K, _Entry[V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """Return the value at *key* and count it as used, or None."""
        entry = self._kept.get(key)
        if entry is None:
            return None
        if entry.expires <= self._clock():
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return entry.value

    def resize(self, entries: int) -> None:
        """Keep at most *entries* from now on."""
        self._entries = entries
        self._make_room()

    def put(self, key: K, value: V, *, seconds: float | None = None) -> None:
        """Keep *value*, for *seconds* if given; the least recently used makes room."""
        expires = float("inf") if seconds is None else self._clock() + seconds
        self._kept[key] = _Entry(value, expires)
        self._kept.move_to_end(key)
        self._make_room()

    def _make_room(self) -> None:
        while len(self._kept) > self._entries:
            self._kept.popitem(last=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much is remembered, and failures for how long."""

    entries: int = 2000
    failure_seconds: float = 600.0
    timeout_failure_seconds: float = 120.0
    absence_seconds: float = 1.0
    """Of an estimator that is not there: nothing was found out about the job."""

    def seconds(self, error: EstimatorError, *, before: float | None = None) -> float | None:
        """Return how long *error* is remembered: for ever if the spec itself is the reason.

        *before* is how long the last timeout was: each further one counts for twice as long.
        """
        if isinstance(error, EstimateTimeoutError):
            longest = max(self.timeout_failure_seconds, self.failure_seconds)
            return min(2 * before, longest) if before else self.timeout_failure_seconds
        if isinstance(error, EstimatorUnavailableError):
            return self.absence_seconds
        if isinstance(error, TraceError | MemoryLimitError):
            return self.failure_seconds
        return None


class Memory(Generic[K, V]):
    """A cache of answers, and of failures for as long as their retention says."""

    def __init__(
        self, retention: Retention, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._retention = retention
        self._kept: Cache[K, V | EstimatorError] = Cache(entries=retention.entries, clock=clock)
        self._timeouts: Cache[K, float] = Cache(entries=retention.entries, clock=clock)
        """For how long the last timeout was remembered: outlives it."""

    def retain(self, retention: Retention) -> None:
        """Remember by *retention* from now on; what is kept keeps its time."""
        self._retention = retention
        self._kept.resize(retention.entries)
        self._timeouts.resize(retention.entries)

    def get(self, key: K) -> V | EstimatorError | None:
        """Return the answer or a failure of the caller's own, or None."""
        kept = self._kept.get(key)
        return _again(kept) if isinstance(kept, EstimatorError) else kept

    def put(self, key: K, answer: V) -> None:
        """Keep *answer*."""
        self._kept.put(key, answer)

    def fail(self, key: K, error: EstimatorError) -> None:
        """Keep *error* for its time."""
        seconds = self._retention.seconds(error, before=self._timeouts.get(key))
        if seconds is not None and isinstance(error, EstimateTimeoutError):
            self._timeouts.put(key, seconds)
        self._kept.put(key, _again(error), seconds=seconds)


def _again(error: EstimatorError) -> EstimatorError:
    """Return a copy of *error* to raise: a kept exception would keep its callers' frames alive."""
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    return copy
