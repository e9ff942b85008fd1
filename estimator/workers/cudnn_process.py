"""One cuDNN process as the pool sees it.

folder of a library -> a connection for each fork; how it ended -> the question it died on
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from estimator.cudnn.journal import Journal, new_memory
from estimator.errors import TraceError
from estimator.workers.child import Child
from estimator.workers.limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class CudnnReadiness:
    """What a cuDNN process says of itself once its library is warm."""

    version: int
    cuda: int
    seconds: float
    rss_bytes: int
    confined: bool
    """The kernel denies it new sockets."""


class CudnnProcess(Child[CudnnReadiness]):
    """A running cuDNN process; `connect` gives a fork a line to it."""

    NAME = "the cuDNN process"

    def __init__(
        self,
        folder: Path,
        *,
        limits: Limits,
        refused: Iterable[str],
        note_served: Callable[[], None],
        note_ended: Callable[[int, str | None], None],
    ) -> None:
        """Start it, to answer none of *refused*.

        *note_served* hears of each fork served, *note_ended* of the end: its status and what was
        asked then. It hears it before anyone who waits for `ended`.
        """
        self._note_served = note_served
        self._note_ended = note_ended
        self._next = 0
        self._unheard = 0
        self._watch: asyncio.TimerHandle | None = None
        self.is_unusable = False
        """Its library cannot be asked, now or later."""
        memory = new_memory()
        try:
            self._journal = Journal(memory)
            arguments = [
                *("--library", str(folder), "--journal", str(memory)),
                *("--question-seconds", str(limits.question_seconds)),
            ]
            super().__init__(
                "estimator.cudnn.process", arguments, limits=limits, descriptors=(memory,)
            )
        finally:
            os.close(memory)
        with suppress(OSError):  # it has ended already, which will be noticed
            self._control.send(orjson.dumps({"refused": list(refused)}))
        self.ready.add_done_callback(lambda _: self._watch_unheard())

    @property
    def asking(self) -> str | None:
        """Return what it is asked now, None if nothing or if it has ended."""
        return None if self.ended.done() else _text(self._journal.read())

    def connect(self) -> socket.socket | None:
        """Return a fork's end of a new connection, None if the process takes none."""
        try:
            theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError:  # no descriptor is left: the fork goes on without
            return None
        order = orjson.dumps({"connect": self._next})
        with ours:
            try:
                socket.send_fds(self._control, [order], [ours.fileno()])
            except OSError:
                theirs.close()
                return None
        self._next += 1
        self._unheard += 1
        self._watch_unheard()
        return theirs

    def _watch_unheard(self) -> None:
        """Wait for a word on the oldest connection, no longer than one question may take.

        The process ends itself if a question takes that long; this is for one that cannot.
        """
        is_ready = self.ready.done() and self.ready.exception() is None
        if self._watch is None and self._unheard and is_ready:
            seconds = self._limits.question_seconds + self._limits.kill_seconds
            self._watch = self._loop.call_later(seconds, self.kill)

    def _unwatch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _note(self, message: Mapping[str, Any]) -> None:
        match message:
            case {"ready": facts}:
                self._started(CudnnReadiness(**facts))
            case {"failed": text}:
                self.is_unusable = True
                self._fail(TraceError(text))
            case {"connected": _}:
                self._unheard -= 1
                self._unwatch()
                self._watch_unheard()
            case {"closed": _}:
                self._note_served()

    def _lose(self, status: int) -> None:
        self._unwatch()
        asked = _text(self._journal.read())
        self._journal.close()
        self._note_ended(status, asked)


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode(errors="replace")
