"""What the worker processes hold while a run goes on.

    process ids -> bytes, read from /proc

Private is what the kernel counts as a process's own (`Private_Clean` and `Private_Dirty` of
smaps_rollup): what a fork shares with its template is not in it. A look takes the kernel 25 ms, so
there are two a second; a shorter peak is not seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from estimator.units import KIB
from estimator.workers.pool import Workers

EVERY_SECONDS = 0.5


class ForkWatch:
    """The largest private memory of each process of a pool."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._largest: dict[int, int] = {}

    def largest_fork(self) -> int | None:
        """Return the most a fork held, None if none was seen. Ask while no fork runs."""
        standing = self._workers.pids()
        seen = [size for pid, size in self._largest.items() if pid not in standing]
        return max(seen, default=None)

    async def watch(self) -> None:
        """Look until cancelled. Templates that run already are not looked at."""
        templates = set(self._workers.pids())
        while True:
            for pid in set(self._workers.pids()) - templates:
                size = await asyncio.to_thread(private_bytes, pid)
                self._largest[pid] = max(size, self._largest.get(pid, 0))
            await asyncio.sleep(EVERY_SECONDS)


def templates_resident(workers: Workers) -> int:
    """Return the resident memory of all processes of *workers*. Ask while no fork runs.

    Pages that two of them share count twice.
    """
    return sum(_kibibytes(Path(f"/proc/{pid}/status"), ("VmRSS:",)) for pid in workers.pids())


def private_bytes(pid: int) -> int:
    """Return the private memory of process *pid*, 0 if it has ended."""
    return _kibibytes(Path(f"/proc/{pid}/smaps_rollup"), ("Private_Clean:", "Private_Dirty:"))


def _kibibytes(path: Path, names: Iterable[str]) -> int:
    try:
        lines = [line.split() for line in path.read_text("ascii").splitlines()]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line[1]) * KIB for line in lines if line and line[0] in names)
