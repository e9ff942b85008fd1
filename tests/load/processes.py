"""What the kernel says of `serve` and of the processes below it.

    pid -> children, forks, resident and private memory, file descriptors

Nothing is ended here but what is named by a pidfd and was a child a moment before.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

TEMPLATE = "estimator.workers.template"
GONE = (FileNotFoundError, ProcessLookupError)


def templates(serve: int) -> list[int]:
    """Return the ids of the template processes of *serve*."""
    return [pid for pid in children(serve) if TEMPLATE in arguments(pid)]


def forks(serve: int) -> list[int]:
    """Return the ids of the workers that are at work."""
    return [fork for template in templates(serve) for fork in children(template)]


def children(pid: int) -> list[int]:
    """Return the ids of the children of *pid*, those of all its threads."""
    found: list[int] = []
    with suppress(*GONE):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(*GONE):
                found += map(int, (thread / "children").read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    """Return the ids of the children of *pid*, theirs, and so on."""
    found = children(pid)
    return [*found, *(below for child in found for below in descendants(child))]


def left_behind(serve: int) -> list[int]:
    """Return the ids of processes that were told *serve* is their parent, and of their forks."""
    return [pid for pid in _all() if _names_parent(arguments(pid), serve) and not is_zombie(pid)]


def arguments(pid: int) -> list[str]:
    """Return the command line of *pid*; a fork has that of its template."""
    with suppress(*GONE):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    return []


def is_estimator(pid: int) -> bool:
    """Return whether *pid* is one of the estimator's processes."""
    return any(word.startswith("estimator.") for word in arguments(pid))


def is_zombie(pid: int) -> bool:
    """Return whether *pid* has ended and only waits for its parent to notice."""
    with suppress(*GONE):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False


def kill_child(pid: int, *, parent: int) -> bool:
    """Kill *pid* if it is a child of *parent*, and return whether it was."""
    try:
        held = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if pid not in children(parent):  # asked while it is held: nobody else has its id
            return False
        signal.pidfd_send_signal(held, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(held)
    return True


def private_mib(pid: int) -> float:
    """Return the memory of *pid* that nobody shares, in MiB; 0 if it has ended."""
    with suppress(*GONE, PermissionError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024
    return 0.0


def descriptors(pid: int, *, cluster_port: int) -> Mapping[str, int]:
    """Return how many descriptors of each kind *pid* has open.

    Connections to *cluster_port* are a kind of their own: clients keep some for the next question.
    None at all where nobody but root may look: `serve` hides its memory, and these with it.
    """
    if not os.access(f"/proc/{pid}/fd", os.R_OK):
        return {}
    remote = _remote_ports(pid)
    found: Counter[str] = Counter()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(*GONE):
            target = (
                entry.readlink().name if "/" in str(entry.readlink()) else str(entry.readlink())
            )
            kind, _, number = target.partition(":")
            if kind == "socket" and remote.get(number.strip("[]")) == cluster_port:
                kind = "cluster"
            found[kind if kind in ("socket", "pipe", "anon_inode", "cluster") else "file"] += 1
    return dict(found)


def num_threads(pid: int) -> int:
    """Return how many threads *pid* has."""
    return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())


def _remote_ports(pid: int) -> Mapping[str, int]:
    """Return inode of a TCP socket -> the port at its other end."""
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return {field[9]: int(field[2].rpartition(":")[2], 16) for field in fields}


def _names_parent(words: list[str], pid: int) -> bool:
    return any(pair == ("--parent", str(pid)) for pair in pairwise(words))


def _all() -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            yield int(entry.name)
