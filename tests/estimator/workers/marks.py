"""Marks that forks leave for tests, which they cannot write themselves.

folder, fork -> a pipe from before the fork -> a process beside the template -> a file

Only stand-ins start it, before they fork: a fork of a real template has no such pipe.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

_RECEIVED = 0


class Marker:
    """One process that writes marks, until the template and all its forks have ended."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)
        reading, self._writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(self._writing)
            self._write_all(reading)
        os.close(reading)
        os.waitpid(pid, 0)

    def leave(self, folder: str) -> None:
        """Have a file in *folder* with the number of this process as its name."""
        os.write(self._writing, f"{folder}/{os.getpid()}\n".encode())

    @property
    def num_left(self) -> int:
        """Return how many marks there are, of all forks of one template."""
        return self._shared[_RECEIVED]

    def _write_all(self, reading: int) -> None:
        """Write what is asked for, as nobody's child: the template has no others than forks."""
        if os.fork() == 0:
            with os.fdopen(reading, encoding="utf-8") as asked:
                for line in asked:
                    Path(line.rstrip("\n")).touch()
                    self._shared[_RECEIVED] += 1
        os._exit(0)
