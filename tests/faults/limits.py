"""Put this process, or another, at a limit of the system for a while.

limit -> as if the machine had no more of it
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TOO_LARGE_STACK = 1 << 47
"""More than a process has of address space (x86-64 and arm64): the system refuses the thread."""
FEW = 256
"""Descriptors: this many are opened at most, on top of those there are."""


@contextmanager
def no_more_threads() -> Iterator[None]:
    """Have the system refuse each new thread of this process."""
    before = threading.stack_size(TOO_LARGE_STACK)
    try:
        yield
    finally:
        threading.stack_size(before)


@contextmanager
def no_more_descriptors() -> Iterator[None]:
    """Have the system refuse each new descriptor of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(_descriptors(os.getpid()))
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(highest + FEW, soft), hard))
    try:
        while True:
            try:
                taken.append(os.dup(0))
            except OSError:  # EMFILE
                break
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def descriptors_of(pid: int, *, spare: int) -> Iterator[None]:
    """Let process *pid* open *spare* descriptors more than it has."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    # The limit is on the number of a new one, and the lowest that is free is taken.
    used = _descriptors(pid)
    free = [each for each in range(len(used) + spare + 1) if each not in used]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free[spare], hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def _descriptors(pid: int) -> set[int]:
    return {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
