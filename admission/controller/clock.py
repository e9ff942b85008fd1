"""The API server's clock, by which the controller reckons.

    dates of answers, seconds since -> now

What it compares with is in objects, written by that clock or ones near it: when a pod was made,
began to wait, ended. The clock of our node may be a day off, or set right while we run; durations
would be too, and jobs be moved for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class ClusterClock:
    """The date of the last answer and what has passed since, by a clock that nobody sets.

    Any number of threads. Before the first answer it is our own.
    """

    def __init__(
        self,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        own: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._monotonic = monotonic
        self._seen = (own(), monotonic())

    def saw(self, moment: datetime) -> None:
        """Take *moment*, the date of an answer that came now: whole seconds, rounded down."""
        self._seen = (moment, self._monotonic())

    def now(self) -> datetime:
        """Return what the API server's clock says now, within a second."""
        moment, at = self._seen
        return moment + timedelta(seconds=self._monotonic() - at)
