"""Limits a process puts on itself before it reads what others wrote.

    seconds, bytes -> this process, limited

Time, memory, no new files, no new sockets, no new programs, death with the parent.
The only ctypes on the kernel. Never raises for a kernel that refuses: it says so.

Not prevented: emptying an existing file the process may write, reading files it may read.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import signal
import socket
import struct
import time
from dataclasses import dataclass, replace
from math import ceil

from estimator.units import GIB

RESERVED_BYTES = 4 * GIB
"""Address space a process may reserve beyond its private memory: thread stacks, malloc arenas and
read-only maps. A ResNet-50 trace adds 579 MiB of address space, of which 68 MiB can be written."""

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2

# linux/bpf_common.h, linux/seccomp.h
_LOAD_WORD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_GREATER_OR_EQUAL = 0x35
_RETURN = 0x06
_RET_ALLOW = 0x7FFF0000
_RET_ERRNO = 0x00050000
_OFFSET_NUMBER = 0
_OFFSET_ARCHITECTURE = 4
_X32_BIT = 0x40000000


@dataclass(frozen=True, slots=True)
class _Architecture:
    audit: int
    """`AUDIT_ARCH_…` of linux/audit.h."""
    denied: tuple[int, ...]
    """The first `_NUM_NETWORK` are the ways to a socket."""


_NUM_NETWORK = 2

# Source: asm/unistd_64.h and asm-generic/unistd.h of Linux 6.12.
_ARCHITECTURES = {
    "x86_64": _Architecture(
        0xC000003E,
        (
            41,  # socket
            425,  # io_uring_setup: would open sockets past this filter
            59,  # execve
            322,  # execveat
            101,  # ptrace
            310,  # process_vm_readv
            311,  # process_vm_writev
            438,  # pidfd_getfd
            76,  # truncate
            82,  # rename
            264,  # renameat
            316,  # renameat2
            84,  # rmdir
            87,  # unlink
            263,  # unlinkat
        ),
    ),
    "aarch64": _Architecture(
        0xC00000B7,
        (
            198,  # socket
            425,  # io_uring_setup
            221,  # execve
            281,  # execveat
            117,  # ptrace
            270,  # process_vm_readv
            271,  # process_vm_writev
            438,  # pidfd_getfd
            45,  # truncate
            38,  # renameat
            276,  # renameat2
            35,  # unlinkat
        ),
    ),
}


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when *parent* ends; end it now if that was missed."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def confine(*, memory_bytes: int, wall_seconds: float | None = None) -> bool:
    """Limit this process and return whether the kernel denies it new sockets.

    *memory_bytes* is private memory from here on; without *wall_seconds* it lives for ever.
    """
    if wall_seconds is not None:
        _limit_time(wall_seconds)
    _prefer_as_victim()
    _limit_memory(memory_bytes)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    return _deny_system_calls()


def limit_memory(memory_bytes: int) -> None:
    """Let this process have *memory_bytes* of private memory more than it has now."""
    _limit_memory(memory_bytes)
    _lower(resource.RLIMIT_CORE, 0)


def deny_network() -> bool:
    """Return whether the kernel denies this process new sockets from here on."""
    return _deny_system_calls(only_network=True)


def is_confinable(*, memory_bytes: int, wall_seconds: float) -> bool:
    """Return whether a fork of this process, confined, is refused a socket."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            confined = confine(memory_bytes=memory_bytes, wall_seconds=wall_seconds)
            status = 0 if confined and not _can_open_socket() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


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


def _deny_system_calls(*, only_network: bool = False) -> bool:
    architecture = _ARCHITECTURES.get(platform.machine())
    if architecture is None or not _prctl(_PR_SET_NO_NEW_PRIVS, 1):
        return False
    if only_network:
        architecture = replace(architecture, denied=architecture.denied[:_NUM_NETWORK])
    code = _filter(architecture)
    program = _Program(len(code) // 8, code)
    return _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program))


def _filter(architecture: _Architecture) -> bytes:
    """Return the BPF program: EPERM for what is denied and for other ABIs, else allowed."""
    denied = architecture.denied
    rows = [
        (_LOAD_WORD, 0, 0, _OFFSET_ARCHITECTURE),
        (_JUMP_EQUAL, 0, len(denied) + 3, architecture.audit),
        (_LOAD_WORD, 0, 0, _OFFSET_NUMBER),
        (_JUMP_GREATER_OR_EQUAL, len(denied) + 1, 0, _X32_BIT),
    ]
    rows += [(_JUMP_EQUAL, len(denied) - index, 0, nr) for index, nr in enumerate(denied)]
    rows += [(_RETURN, 0, 0, _RET_ALLOW), (_RETURN, 0, 0, _RET_ERRNO | errno.EPERM)]
    return b"".join(struct.pack("HBBI", *row) for row in rows)


def _can_open_socket() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()
    except PermissionError:
        return False
    return True


def _prctl(option: int, first: object, second: object = 0) -> bool:
    """Return whether prctl(2) accepted *option*."""
    library = ctypes.CDLL(None, use_errno=True)
    arguments = (
        ctypes.c_ulong(value) if isinstance(value, int) else value for value in (first, second)
    )
    zero = ctypes.c_ulong(0)
    return int(library.prctl(ctypes.c_int(option), *arguments, zero, zero)) == 0
