"""What another process of the same user reads of one: everything, unless it hides its memory."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path

from estimator.processes import jail, kernel

PLAIN_USER = 65534
"""Where the tests run as root, who reads everything."""
SHOWN = ("environ", "mem", "maps", "fd", "root")


def in_fork(do: Callable[[], object]) -> tuple[int, int]:
    """Return a fork of a plain user that does *do* and stays, and what ends it once closed."""
    told, telling = os.pipe()
    staying, ending = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ending)
            become_plain()
            do()
            os.write(telling, b".")
            os.read(staying, 1)
        finally:
            os._exit(0)
    os.close(telling)
    os.close(staying)
    assert os.read(told, 1) == b"."
    os.close(told)
    return pid, ending


def nothing() -> None:
    """Hide nothing."""


def become_plain() -> None:
    """Have this process be of a plain user, as the kernel has any other that was started so."""
    if os.getuid() == 0:
        os.setgid(PLAIN_USER)
        os.setuid(PLAIN_USER)
        kernel.control(kernel.SET_DUMPABLE, 1)


def read_by_another(pid: int) -> dict[str, str]:
    """Return what another process of that user finds of process *pid*: errors by name."""
    reading, writing = os.pipe()
    reader = os.fork()
    if reader == 0:
        try:
            become_plain()
            found = [f"{name}={_opened(f'/proc/{pid}/{name}')}" for name in SHOWN]
            os.write(writing, " ".join(found).encode())
        finally:
            os._exit(0)
    os.close(writing)
    said = os.read(reading, 1 << 12).decode()
    os.close(reading)
    os.waitpid(reader, 0)
    return dict(each.split("=") for each in said.split())


def _opened(path: str) -> str:
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "read"


def test_memory_that_is_hidden_is_read_by_nobody_of_the_same_user() -> None:
    """A worker is such a process; where there is no Landlock, nothing else keeps it off."""
    (plain, end_plain), (hidden, end_hidden) = in_fork(nothing), in_fork(jail.hide_memory)

    of_plain, of_hidden = read_by_another(plain), read_by_another(hidden)

    for pid, ending in ((plain, end_plain), (hidden, end_hidden)):
        os.close(ending)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert of_plain["environ"] == "read"
    assert of_hidden == dict.fromkeys(SHOWN, "EACCES")


def test_process_that_hides_its_memory_reads_its_own_folder() -> None:
    """Metrics of the process come from there: its size, times, limits, descriptors, threads."""

    def look() -> None:
        jail.hide_memory()
        for name in ("stat", "statm", "status", "limits", "smaps_rollup"):
            assert Path(f"/proc/self/{name}").read_bytes()
        assert list(Path("/proc/self/fd").iterdir())
        assert list(Path("/proc/self/task").iterdir())

    pid, ending = in_fork(look)

    os.close(ending)
    os.waitpid(pid, 0)
