"""Where log lines go, in a way that costs lines and never the process.

    line -> file descriptor, or lost and counted

A disk that is full, a pipe that nobody holds any more, and one that nobody reads from fail or stop
whoever writes: here that would be every review.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

PATIENCE_SECONDS = 0.1
"""How long a line waits for a reader. Only the first of those that are lost one after the other."""
PIECE_BYTES = select.PIPE_BUF
"""A pipe that says it can be written to takes this much at once (pipe(7))."""
MAX_LINE_BYTES = 1 << 20
"""What is longer is cut: a traceback of ours has some kilobytes."""


class LogStream:
    """A text stream for loggers, of any number of threads."""

    def __init__(self, stream: TextIO, *, lost: Callable[[int], str]) -> None:
        """Write to *stream*; *lost* makes the line that says how many were lost before it."""
        self._stream = stream
        self._descriptor = _descriptor(stream)
        self._waiting = select.poll()
        if self._descriptor is not None:
            self._waiting.register(self._descriptor, select.POLLOUT)
        self._tell = lost
        self._lock = threading.Lock()
        self._num_lost = 0
        self._patience = PATIENCE_SECONDS
        self._is_broken_off = False
        """Whether the last line that was written has no end."""

    def write(self, text: str) -> int:
        """Write *text*, one or more whole lines, or lose them."""
        with self._lock:
            if self._num_lost and self._put(self._tell(self._num_lost) + "\n"):
                self._num_lost = 0
            if self._num_lost or not self._put(text):
                self._num_lost += 1
        return len(text)

    def flush(self) -> None:
        """Keep nothing back: there is nothing."""

    def _put(self, text: str) -> bool:
        """Return whether *text* was written whole."""
        try:
            if self._descriptor is None:
                self._stream.write(text)
                self._stream.flush()
                return True
            return self._put_bytes(self._descriptor, text.encode(errors="backslashreplace"))
        except (OSError, ValueError):  # ENOSPC, EPIPE, EIO; a stream that was closed
            return False

    def _put_bytes(self, descriptor: int, content: bytes) -> bool:
        if len(content) > MAX_LINE_BYTES:
            content = content[: MAX_LINE_BYTES - 1] + b"\n"
        if self._is_broken_off:
            content = b"\n" + content
        written = 0
        while written < len(content):
            if not self._takes():
                break
            written += os.write(descriptor, content[written : written + PIECE_BYTES])
        if written:
            self._is_broken_off = written < len(content)
        return written == len(content)

    def _takes(self) -> bool:
        """Return whether the descriptor takes a piece, now or in a moment."""
        takes = bool(self._waiting.poll(self._patience * 1000))
        self._patience = PATIENCE_SECONDS if takes else 0.0
        return takes


def _descriptor(stream: TextIO) -> int | None:
    """Return what *stream* writes to, None for one in memory."""
    with suppress(OSError, ValueError):
        stream.flush()
        return stream.fileno()
    return None
