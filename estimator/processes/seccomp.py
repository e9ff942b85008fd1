"""A filter of the kernel on the system calls of this process.

rules by name, architecture -> BPF program -> this process, filtered for good

A call without a rule passes, one that is newer than our table does not, nor one of another ABI.
A filter sees numbers and plain arguments, never what lies in memory: no path, no structure.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from estimator.processes import kernel, system_calls

# linux/bpf_common.h, linux/seccomp.h
_LOAD_WORD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_GREATER_OR_EQUAL = 0x35
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06
_RET_ALLOW = 0x7FFF0000
_RET_ERRNO = 0x00050000
_OFFSET_NUMBER = 0
_OFFSET_ARCHITECTURE = 4
_OFFSET_ARGUMENTS = 16
_X32_BIT = 0x40000000

Row = tuple[int, int, int, int]
Rule = tuple[Row, ...]
"""The part of a program that decides about one call: each way through it returns."""

ALLOW: Row = (_RETURN, 0, 0, _RET_ALLOW)
DENY: Row = (_RETURN, 0, 0, _RET_ERRNO | errno.EPERM)
ABSENT: Row = (_RETURN, 0, 0, _RET_ERRNO | errno.ENOSYS)

# linux/sched.h: threads pass, other processes and namespaces do not.
_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020080
# asm-generic/fcntl.h, the same on both architectures: __O_TMPFILE is the last.
_OPENS_TO_CHANGE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | 0o20000000
# asm-generic/ioctls.h: what a file is, and whether it waits. Nothing on a terminal or a card.
_HARMLESS_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# F_SETOWN, F_SETSIG, F_SETOWN_EX: have the kernel send a signal; F_SETLEASE, F_NOTIFY.
_FCNTLS_ON_OTHERS = (8, 10, 15, 1024, 1026)
_ONE_PROCESS = 0
"""PRIO_PROCESS of linux/resource.h."""
_HARMLESS_PRCTLS = (
    kernel.SET_NAME,
    kernel.GET_NAME,
    kernel.GET_SECCOMP,
    kernel.CAPABILITY_BOUNDING_SET_READ,
    kernel.GET_NO_NEW_PRIVILEGES,
    kernel.SET_NAME_OF_MEMORY,
)


@dataclass(frozen=True, slots=True)
class _Architecture:
    audit: int
    """`AUDIT_ARCH_…` of linux/audit.h."""
    column: int
    """Which number of a call is its own."""


_ARCHITECTURES = {
    "x86_64": _Architecture(0xC000003E, 0),
    "aarch64": _Architecture(0xC00000B7, 1),
}

_GROUPS = (
    system_calls.SOCKETS,
    system_calls.NETWORK,
    system_calls.PROGRAMS,
    system_calls.PROCESSES,
    system_calls.TIMERS,
    system_calls.MEMORY_OF_OTHERS,
    system_calls.FILES,
    system_calls.MOUNTS,
    system_calls.IDENTITY,
    system_calls.SHARED,
    system_calls.KERNEL,
)
_NUMBERS = {
    name: numbers
    for group in (*_GROUPS, system_calls.CHECKED, system_calls.UNSEEN)
    for name, numbers in group.items()
}
_FOR_FORKS = ("fork", "vfork", "seccomp", "setrlimit", "setitimer")
"""What a process needs that forks, and whose forks limit themselves."""


def worker_rules(pid: int, *, sets_timer: bool = False) -> Mapping[str, Rule]:
    """Return what process *pid* is held to, which reads, computes and answers, and ends alone.

    The timer that is to end it was set before, unless it *sets_timer* itself, for each question.
    """
    rules = {
        **_denied(),
        "open": _without_bits(1, _OPENS_TO_CHANGE),
        "openat": _without_bits(2, _OPENS_TO_CHANGE),
        "clone": (
            *_if_bits(0, _CLONE_NAMESPACES, DENY),
            *_if_bits(0, _CLONE_THREAD, ALLOW),
            DENY,
        ),
        "kill": _only(0, (pid,)),
        "tgkill": _only(0, (pid,)),
        "sched_setaffinity": _only(0, (0, pid)),
        "setpriority": (*_if_not(0, (_ONE_PROCESS,), DENY), *_only(1, (0, pid))),
        "sendto": _without_address(4),
        "prlimit64": (*_if_not(0, (0, pid), DENY), *_without_address(2)),
        "prctl": _only(0, _HARMLESS_PRCTLS),
        "ioctl": _only(1, _HARMLESS_IOCTLS),
        "fcntl": (*_if(1, _FCNTLS_ON_OTHERS, DENY), ALLOW),
    }
    if sets_timer:
        del rules["setitimer"]
    return rules


def server_rules() -> Mapping[str, Rule]:
    """Return what a process is held to that forks, ends its forks, and does nothing else."""
    rules = dict(worker_rules(0))
    for name in (*_FOR_FORKS, "kill", "tgkill", "prlimit64", "prctl"):
        del rules[name]
    return rules | {"clone": _without_bits(0, _CLONE_NAMESPACES)}


def socket_rules() -> Mapping[str, Rule]:
    """Return what keeps a process from new sockets, and from nothing else."""
    return dict.fromkeys(system_calls.SOCKETS, (DENY,))


def install(rules: Mapping[str, Rule], *, refuse_newer: bool = True) -> bool:
    """Return whether the kernel holds this process to *rules* from here on."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES or not kernel.control(kernel.SET_NO_NEW_PRIVILEGES, 1):
        return False
    return kernel.install_filter(program(rules, machine, refuse_newer=refuse_newer))


def program(rules: Mapping[str, Rule], machine: str, *, refuse_newer: bool = True) -> bytes:
    """Return the BPF program for *rules* on *machine*."""
    architecture = _ARCHITECTURES[machine]
    rows: list[Row] = [
        (_LOAD_WORD, 0, 0, _OFFSET_ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, architecture.audit),
        DENY,
        (_LOAD_WORD, 0, 0, _OFFSET_NUMBER),
        (_JUMP_GREATER_OR_EQUAL, 0, 1, _X32_BIT),
        DENY,
    ]
    if refuse_newer:
        rows += [(_JUMP_GREATER_OR_EQUAL, 0, 1, system_calls.NEWEST + 1), ABSENT]
    for name, rule in rules.items():
        number = _NUMBERS[name][architecture.column]
        if number is not None:
            rows += [(_JUMP_EQUAL, 0, len(rule), number), *rule]
    rows.append(ALLOW)
    return b"".join(struct.pack("HBBI", *row) for row in rows)


def _denied() -> dict[str, Rule]:
    denied: dict[str, Rule] = {name: (DENY,) for group in _GROUPS for name in group}
    return denied | dict.fromkeys(system_calls.UNSEEN, (ABSENT,))


def _word(argument: int, *, upper: bool = False) -> Row:
    return (_LOAD_WORD, 0, 0, _OFFSET_ARGUMENTS + 8 * argument + 4 * upper)


def _if(argument: int, values: Iterable[int], then: Row) -> Rule:
    """Return rows that end with *then* where the argument is one of *values*, else go on."""
    checks = [row for value in values for row in ((_JUMP_EQUAL, 0, 1, value), then)]
    return (_word(argument), *checks)


def _if_not(argument: int, values: tuple[int, ...], then: Row) -> Rule:
    last = len(values)
    jumps = [(_JUMP_EQUAL, last - index, 0, value) for index, value in enumerate(values)]
    return (_word(argument), *jumps, then)


def _if_bits(argument: int, mask: int, then: Row) -> Rule:
    return (_word(argument), (_JUMP_ANY_BIT, 0, 1, mask), then)


def _only(argument: int, values: tuple[int, ...]) -> Rule:
    return (*_if(argument, values, ALLOW), DENY)


def _without_bits(argument: int, mask: int) -> Rule:
    return (*_if_bits(argument, mask, DENY), ALLOW)


def _without_address(argument: int) -> Rule:
    """Return rows that allow the call only where the argument is no address."""
    halves = [
        row
        for upper in (False, True)
        for row in (_word(argument, upper=upper), (_JUMP_EQUAL, 1, 0, 0), DENY)
    ]
    return (*halves, ALLOW)
