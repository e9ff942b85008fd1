"""A few turns at once, given in rotation to those who ask.

    key -> a turn, once it is the key's

Whoever asks for many waits behind its own questions and not in front of everybody else's.
Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """At most *number* turns are out; each one is given back."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}
        """Who waits, by key; the key at the front is served next."""

    @property
    def num_waiting(self) -> int:
        """Return how many wait."""
        return sum(len(line) for line in self._lines.values())

    async def wait(self, key: str) -> None:
        """Take a turn, once there is one for *key*. Whoever is cancelled leaves the line."""
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(key, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(key, turn)
            else:  # it was given in the same moment
                self.give_back()
            raise

    def give_back(self) -> None:
        """Let the next key have a turn that was taken."""
        while self._lines:
            key = next(iter(self._lines))
            line = self._lines.pop(key)
            turn = line.popleft()
            if line:
                self._lines[key] = line  # behind all others
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _leave(self, key: str, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(key)
        if line is None or turn not in line:
            return
        line.remove(turn)
        if not line:
            del self._lines[key]
