"""When a process that ended may be started again.

    ends, answers, time -> pause in seconds

After an end one start is allowed at once; before each further one in a row there is a pause, twice
as long each time. Pure: the time is given.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0


@dataclass(slots=True)
class Restarts:
    """The ends of one process without an answer in between."""

    _failures: int = 0
    _next_start: float = 0.0

    def pause(self, now: float) -> float:
        """Return how long no start is allowed; zero or less if it is."""
        return self._next_start - now

    def note_end(self, now: float) -> None:
        """Remember an end."""
        if self._failures:
            # The exponent is bounded: a process may keep ending for years.
            pause = FIRST_PAUSE * 2.0 ** min(self._failures - 1, 16)
            self._next_start = now + min(pause, LONGEST_PAUSE)
        self._failures += 1

    def note_answer(self) -> None:
        """Forget earlier ends: the process works."""
        self._failures = 0
