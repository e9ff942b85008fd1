"""Remember answers, the least recently used forgotten first.

    key -> value, for as long as it is worth

Not for several threads: it belongs to the event loop.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

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

    def put(self, key: K, value: V, *, seconds: float | None = None) -> None:
        """Keep *value*, for *seconds* if given; the least recently used makes room."""
        expires = float("inf") if seconds is None else self._clock() + seconds
        self._kept[key] = _Entry(value, expires)
        self._kept.move_to_end(key)
        while len(self._kept) > self._entries:
            self._kept.popitem(last=False)
