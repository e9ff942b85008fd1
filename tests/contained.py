"""Run a Python command, and see that no process of it outlives it.

    arguments of python -> its exit status; 1 if it left a process behind

The kernel gives us every descendant that loses its parent (prctl(2), PR_SET_CHILD_SUBREAPER), in
whatever session or group it is: they are reaped here, which the first process of a container may
not do. Ends only what descends from us.

    python -m tests.contained -m pytest -m e2e
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
PATIENCE_SECONDS = 60.0
"""For what is about to end, as a fork server does when its parent has: long enough anywhere."""
POLL_SECONDS = 0.05


def run(arguments: Sequence[str], *, patience_seconds: float = PATIENCE_SECONDS) -> int:
    """Return the exit status of `python arguments`; 1 if a process of it had to be ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    process = subprocess.Popen([sys.executable, *arguments])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells the command too
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(process.pid, number))
    while (ended := os.wait())[0] != process.pid:
        pass
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # its id is free for others now
    status = process.returncode = os.waitstatus_to_exitcode(ended[1])
    if _all_end(patience_seconds):
        return status if status >= 0 else 128 - status
    for pid in descendants(os.getpid()):
        print(f"left behind: {pid} {_command(pid)}", file=sys.stderr, flush=True)
    _end_all()
    return 1


def descendants(pid: int) -> tuple[int, ...]:
    """Return the children of *pid*, theirs and so on, parents first; Linux only."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    return tuple(_below(pid, parents))


def _below(pid: int, parents: dict[int, int]) -> Iterator[int]:
    for child in [each for each, parent in parents.items() if parent == pid]:
        yield child
        yield from _below(child, parents)


def _all_end(seconds: float) -> bool:
    """Return whether every child ends in time; they are reaped."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if not pid:
            time.sleep(POLL_SECONDS)
    return False


def _end_all() -> None:
    """End every descendant, those of the ended too."""
    while left := descendants(os.getpid()):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        _all_end(POLL_SECONDS)


def _command(pid: int) -> str:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return "(ended)"
    return command.replace(b"\0", b" ").decode(errors="replace")


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
