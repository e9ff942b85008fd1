"""What of the API server cannot be followed now: told once, and again when it is over.

    failures and answers of watches -> one log line at the start and the end, and a metric

Any number of threads. An API server that is away interrupts every watch: that is one line.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import structlog

_log = structlog.get_logger()


class Watched(StrEnum):
    """What is followed: labels of `vramgate_watch_interrupted`."""

    NODES = "nodes"
    NAMESPACES = "namespaces"
    SECRETS = "secrets"
    CONFIG_MAPS = "configmaps"
    VALIDATING = "validatingwebhookconfigurations"
    MUTATING = "mutatingwebhookconfigurations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """Objects of one kind, or one object."""

    kind: str
    """The plural name, as in `Watched`."""
    path: str


TellInterrupted = Callable[[frozenset[str]], None]
"""Told whenever it changes which resources are not followed, by their plural names."""


class Outages:
    """Which watches of one API server are interrupted, and why."""

    def __init__(
        self,
        tell: TellInterrupted = lambda _: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self._away: set[Followed] = set()
        """What nobody answers about."""
        self._began = 0.0
        """When the first of them was asked about in vain."""
        self._refused: dict[Followed, str] = {}
        """Why it is refused."""

    def failed(self, what: Followed, reason: str, *, is_away: bool) -> None:
        """Take note that *what* cannot be followed; *is_away*: nobody answers."""
        with self._lock:
            if is_away:
                self._refused.pop(what, None)
                if not self._away:
                    _log.warning("api server away", path=what.path, reason=reason)
                    self._began = self._clock()
                self._away.add(what)
            else:
                self._answered(what)
                # A role that is missing is missing for long; another reason is another line.
                if self._refused.get(what) != reason:
                    _log.warning("watch interrupted", path=what.path, reason=reason)
                self._refused[what] = reason
            self._show()

    def over(self, what: Followed) -> None:
        """Take note that *what* is followed."""
        with self._lock:
            if what not in self._away and what not in self._refused:
                return
            self._answered(what)
            if self._refused.pop(what, None) is not None:
                _log.info("watch resumed", path=what.path)
            self._show()

    def _answered(self, what: Followed) -> None:
        if what not in self._away:
            return
        self._away.remove(what)
        if not self._away:
            _log.info("api server answers again", seconds=round(self._clock() - self._began, 1))

    def _show(self) -> None:
        self._tell(frozenset(what.kind for what in (*self._away, *self._refused)))
