"""Limits a process puts on itself before it reads what others wrote.

    seconds, bytes -> this process, limited; folders -> this process, isolated

Time, memory, no files but those of the program itself, none changed, no sockets, no programs, no
other processes, death with the parent. Never raises for a kernel that refuses: it says so.

Without Landlock (`Isolation.files` is 0) files that the user of this process may read are read.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from estimator.processes import kernel, landlock, seccomp
from estimator.units import GIB

RESERVED_BYTES = 4 * GIB
"""Address space a process may reserve beyond its private memory: thread stacks, malloc arenas and
read-only maps. A ResNet-50 trace adds 579 MiB of address space, of which 68 MiB can be written."""

_ROOT = str(Path(__file__).parents[2])
_READ = (
    *("/usr", "/lib", "/lib64", "/bin"),
    *("/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/etc/os-release"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/mime.types"),
    *("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version"),
    *("/proc/filesystems", "/proc/sys/kernel", "/proc/sys/vm", "/sys/devices/system"),
    *("/sys/fs/cgroup", "/sys/kernel/mm"),
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
)
"""What programs and their libraries read of a machine. Nothing in it is anybody's secret."""

FEATURES = ("seccomp", "landlock")
"""What isolates a process, by its name in the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """What of the isolation the kernel has given."""

    system_calls: bool
    """A filter keeps the process from sockets, changes, programs and other processes."""
    files: int
    """ABI of the Landlock that keeps it to the program's own files, 0 where there is none."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the features that the kernel lacks."""
        given = (self.system_calls, bool(self.files))
        return tuple(name for name, is_given in zip(FEATURES, given, strict=True) if not is_given)


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when *parent* ends; end it now if that was missed."""
    kernel.control(kernel.SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def hide_memory() -> bool:
    """Return whether others of the same user are kept from the memory of this process.

    From its variables, descriptors and `/proc/PID` too; it leaves no core file. Root may look
    still. What it executes, its templates, is as any other process until it asks for the same.
    """
    return kernel.control(kernel.SET_DUMPABLE, 0)


def confine(
    *, memory_bytes: int, wall_seconds: float | None = None, reads: Iterable[str] = ()
) -> Isolation:
    """Limit and isolate this process, which reads, computes and answers, and ends alone.

    *memory_bytes* is private memory from here on; without *wall_seconds* it lives for ever, and
    sets a timer for each question itself. It may open what lies under *reads* beside the program's
    own files.
    """
    limit(memory_bytes=memory_bytes, wall_seconds=wall_seconds)
    return isolate(reads=reads, sets_timer=wall_seconds is None)


def limit(*, memory_bytes: int, wall_seconds: float | None = None) -> None:
    """Limit the time and memory of this process."""
    if wall_seconds is not None:
        _limit_time(wall_seconds)
    _prefer_as_victim()
    _limit_memory(memory_bytes)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)


def isolate(
    *, forks: bool = False, reads: Iterable[str] = (), sets_timer: bool = False
) -> Isolation:
    """Keep this process from all that is not its own; *forks*: it may start and end forks.

    The timer that is to end it stays as it is, unless it *sets_timer*. Others of the same user are
    kept from its memory too.
    """
    hide_memory()
    of_forks = ("/proc",) if forks else ()  # each has a folder of its own there
    files = landlock.restrict(reads=(*readable(), *of_forks, *reads))
    alone = seccomp.worker_rules(os.getpid(), sets_timer=sets_timer)
    rules = seccomp.server_rules() if forks else alone
    return Isolation(system_calls=seccomp.install(rules), files=files)


def readable() -> tuple[str, ...]:
    """Return the folders and files of the program itself: Python, its packages, its libraries."""
    own = (_ROOT, sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path)
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    found = (path for path in (*own, *libraries) if path not in ("", os.sep))
    return tuple(dict.fromkeys((*found, *_READ)))


def limit_memory(memory_bytes: int) -> None:
    """Let this process have *memory_bytes* of private memory more than it has now."""
    _limit_memory(memory_bytes)
    _lower(resource.RLIMIT_CORE, 0)


def deny_network() -> bool:
    """Return whether the kernel denies this process new sockets from here on."""
    return seccomp.install(seccomp.socket_rules(), refuse_newer=False)


def isolation_of_fork(*, memory_bytes: int, wall_seconds: float) -> Isolation:
    """Return how a fork of this process, confined, is isolated: as it finds it by trying."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            found = confine(memory_bytes=memory_bytes, wall_seconds=wall_seconds)
            filtered = found.system_calls and not _can_open_socket()
            os.write(writing, bytes((filtered, min(found.files, 255))))
        finally:
            os._exit(0)
    os.close(writing)
    said = os.read(reading, 2) or bytes(2)
    os.close(reading)
    os.waitpid(pid, 0)
    return Isolation(system_calls=bool(said[0]), files=said[1])


def _limit_time(seconds: float) -> None:
    """SIGALRM and SIGXCPU end the process; nothing in Python has to run for that."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM, signal.SIGXCPU})
    signal.setitimer(signal.ITIMER_REAL, seconds)
    used = ceil(time.process_time() + seconds)
    _lower(resource.RLIMIT_CPU, used, used + 1)


def _limit_memory(allowance: int) -> None:
    """Limit writable private memory tightly and address space loosely, both from here on.

    Measured: RLIMIT_DATA counts what can be written and not shared; reservations, read-only and
    shared maps pass it and meet RLIMIT_AS.
    """
    size, data = _address_space()
    _lower(resource.RLIMIT_DATA, data + allowance)
    _lower(resource.RLIMIT_AS, size + allowance + RESERVED_BYTES)


def _lower(limit: int, soft: int, hard: int | None = None) -> None:
    """Set *limit* to *soft* and *hard*, never above what this process was given."""
    given = resource.getrlimit(limit)[1]
    bounds = (soft, soft if hard is None else hard)
    if given != resource.RLIM_INFINITY:
        bounds = (min(bounds[0], given), min(bounds[1], given))
    resource.setrlimit(limit, bounds)


def _address_space() -> tuple[int, int]:
    """Return this process's address space and its private writable part (proc(5), statm)."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 (no pathlib in a fork)
        pages = [int(word) for word in file.read().split()]
    page = resource.getpagesize()
    return pages[0] * page, pages[5] * page


def _prefer_as_victim() -> None:
    """Have the kernel end this process first when the machine runs out of memory."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write("1000")
    except OSError:
        pass  # a read-only /proc: the limits above still hold


def _can_open_socket() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()
    except PermissionError:
        return False
    return True
