"""A few turns at once, given in rotation to those who ask.

    key -> Turn -> given, once it is the key's; refused where too many wait

Whoever asks for many waits behind its own questions and not in front of everybody else's, never
has the last turn while there is more than one, and makes room where all places to wait are taken.
Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable


class NoRoomError(Exception):
    """There is no place to wait, or somebody came who had asked for less."""


class Turn:
    """One turn, asked for: to be given back whatever becomes of it."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_given(self) -> bool:
        """Return whether it was given."""
        return self._future.done() and self._future.exception() is None

    async def given(self) -> None:
        """Wait until it is.

        Raises:
            NoRoomError: if it is not any more.
        """
        await asyncio.shield(self._future)

    def then(self, settled: Callable[[Turn], None]) -> None:
        """Call *settled* in a moment, once it is given or refused."""
        self._future.add_done_callback(lambda _: settled(self))

    def give(self) -> None:
        """Tell whoever waits that it is theirs."""
        self._future.set_result(None)

    def refuse(self) -> None:
        """Tell whoever waits that it will not be."""
        self._future.set_exception(NoRoomError())
        self._future.exception()  # whoever gave up does not hear of it


class Turns:
    """At most *number* turns are out.

    At most *room* are out or waited for, *room_each* of them by one key.
    """

    def __init__(self, number: int, *, room: float = math.inf, room_each: float = math.inf) -> None:
        self._free = number
        self._most_each = max(1, number - 1)
        self._room, self._room_each = room, room_each
        self._out: dict[Turn, None] = {}
        self._held: Counter[str] = Counter()
        """How many turns each key has."""
        self._lines: dict[str, deque[Turn]] = {}
        """Who waits, by key; the key at the front is served next."""

    @property
    def num_waiting(self) -> int:
        """Return how many wait."""
        return sum(map(len, self._lines.values()))

    @property
    def num_asked(self) -> int:
        """Return how many wait or have a turn."""
        return len(self._out) + self.num_waiting

    def ask(self, key: str) -> Turn:
        """Return a turn for *key*, given already or waited for.

        Raises:
            NoRoomError: if *key* has asked for too many, or all places are taken and no other key
                has more of them.
        """
        line = self._lines.get(key, ())
        if self._held[key] + len(line) >= self._room_each:
            raise NoRoomError
        if self.num_asked >= self._room:
            self._make_room(len(line))
        turn = Turn(key)
        self._lines.setdefault(key, deque()).append(turn)
        self._serve()
        return turn

    def give_back(self, turn: Turn) -> None:
        """Let others have *turn*, or its place; nothing happens if that was done before."""
        if turn in self._out:
            del self._out[turn]
            self._held[turn.key] -= 1
            if not self._held[turn.key]:
                del self._held[turn.key]
            self._free += 1
        else:
            self._leave(turn)
        self._serve()

    def _serve(self) -> None:
        """Give what is free to the first keys that may have one more."""
        while self._free:
            key = next((key for key in self._lines if self._held[key] < self._most_each), None)
            if key is None:
                return
            line = self._lines.pop(key)
            turn = line.popleft()
            if line:
                self._lines[key] = line  # behind all others
            self._free -= 1
            self._held[key] += 1
            self._out[turn] = None
            turn.give()

    def _make_room(self, length: int) -> None:
        """Refuse the newest of the longest line, if whoever has *length* waiting has less then."""
        longest = max(self._lines.values(), key=len, default=deque[Turn]())
        if len(longest) <= length + 1:
            raise NoRoomError
        turn = longest[-1]
        self._leave(turn)
        turn.refuse()

    def _leave(self, turn: Turn) -> None:
        line = self._lines.get(turn.key)
        if line is None or turn not in line:
            return
        line.remove(turn)
        if not line:
            del self._lines[turn.key]
