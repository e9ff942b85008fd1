"""The tables of system calls against those of the kernel, and programs against them.

`system_calls.txt` is the whole table of the kernel, which says for both architectures what a number
means; programs for aarch64 are run by a reading of BPF, since no such machine is here.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from estimator.processes import seccomp, system_calls

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMNS = {"x86_64": 0, "aarch64": 1}
TABLE = Path(__file__).with_name("system_calls.txt")
DENYING = (
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


def kernels() -> dict[str, tuple[int | None, int | None]]:
    """Return every call of the kernel with its numbers."""
    return {name: (_number(first), _number(second)) for name, first, second, _ in _rows()}


def passing() -> set[str]:
    """Return the calls that pass: harmless ones, and those behind which no kernel has anything."""
    return {name for name, _, _, why in _rows() if why in ("harmless", "gone")}


def _rows() -> list[list[str]]:
    lines = TABLE.read_text().splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


def ours() -> dict[str, tuple[int | None, int | None]]:
    """Return every call that a rule is about."""
    groups = (*DENYING, system_calls.CHECKED, system_calls.UNSEEN)
    return {name: numbers for group in groups for name, numbers in group.items()}


def test_every_number_is_the_kernels() -> None:
    """On both architectures, of which one was never run here."""
    known = kernels()

    assert {name: known[name] for name in ours()} == ours()
    assert known["clone3"] == (435, 435)
    assert max(number for pair in known.values() for number in pair if number) == (
        system_calls.NEWEST
    )


def test_every_call_is_denied_checked_or_known_to_be_harmless() -> None:
    """A call that a later kernel brings is in none of them, and refused by its number."""
    assert set(kernels()) == set(ours()) | passing()
    assert not set(ours()) & passing()


@pytest.mark.parametrize("machine", AUDIT)
def test_a_worker_may_call_what_is_harmless_alone(machine: str) -> None:
    """Each number of the table, and those beside it."""
    program = seccomp.program(seccomp.worker_rules(7), machine)
    denied = {name for group in DENYING for name in group}

    for name, numbers in kernels().items():
        if (number := numbers[COLUMNS[machine]]) is None:
            continue
        answer = answered(program, number, AUDIT[machine])
        if name in denied:
            assert answer == errno.EPERM, name
        elif name in system_calls.UNSEEN:
            assert answer == errno.ENOSYS, name
        elif name not in system_calls.CHECKED:
            assert answer == 0, name
    assert answered(program, system_calls.NEWEST + 1, AUDIT[machine]) == errno.ENOSYS


@pytest.mark.parametrize("machine", AUDIT)
def test_other_abis_of_the_machine_are_denied(machine: str) -> None:
    """Their numbers mean other calls."""
    program = seccomp.program(seccomp.worker_rules(7), machine)
    others = (0x40000003, 0x40000028, *(audit for audit in AUDIT.values()))

    for audit in others:
        expected = 0 if audit == AUDIT[machine] else errno.EPERM
        assert answered(program, kernels()["read"][COLUMNS[machine]] or 0, audit) == expected
    assert answered(program, 0x40000000 + 1, AUDIT[machine]) == errno.EPERM


@pytest.mark.parametrize("machine", AUDIT)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("openat", {2: 0o2000000}, 0),
        ("openat", {2: 0o1}, errno.EPERM),
        ("openat", {2: 0o2}, errno.EPERM),
        ("openat", {2: 0o100}, errno.EPERM),
        ("openat", {2: 0o1000}, errno.EPERM),
        ("openat", {2: 0o20200000}, errno.EPERM),
        ("clone", {0: 0x3D0F00}, 0),
        ("clone", {0: 17}, errno.EPERM),
        ("clone", {0: 0x3D0F00 | 0x40000000}, errno.EPERM),
        ("kill", {0: 7}, 0),
        ("kill", {0: 8}, errno.EPERM),
        ("kill", {0: 0}, errno.EPERM),
        ("tgkill", {0: 7}, 0),
        ("tgkill", {0: 6}, errno.EPERM),
        ("sendto", {}, 0),
        ("sendto", {4: 1 << 40}, errno.EPERM),
        ("sendto", {4: 1}, errno.EPERM),
        ("prlimit64", {0: 7}, 0),
        ("prlimit64", {0: 9}, errno.EPERM),
        ("prlimit64", {0: 0, 2: 1 << 33}, errno.EPERM),
        ("prctl", {0: 15}, 0),
        ("prctl", {0: 1}, errno.EPERM),
        ("ioctl", {1: 0x5401}, 0),
        ("ioctl", {1: 0x5412}, errno.EPERM),
        ("fcntl", {1: 3}, 0),
        ("fcntl", {1: 8}, errno.EPERM),
        ("setpriority", {0: 0, 1: 0}, 0),
        ("setpriority", {0: 0, 1: 9}, errno.EPERM),
        ("setpriority", {0: 2, 1: 0}, errno.EPERM),
        ("sched_setaffinity", {0: 9}, errno.EPERM),
    ],
)
def test_what_depends_on_arguments(
    machine: str, name: str, arguments: Mapping[int, int], expected: int
) -> None:
    """The process may do to itself what it may not to others."""
    program = seccomp.program(seccomp.worker_rules(7), machine)
    number = ours()[name][COLUMNS[machine]]
    assert number is not None

    assert answered(program, number, AUDIT[machine], arguments) == expected


def test_a_process_that_forks_may_fork_and_end_its_forks() -> None:
    """And nothing else that a worker may not: no sockets, files, programs, namespaces."""
    program = seccomp.program(seccomp.server_rules(), "x86_64")
    table, audit = kernels(), AUDIT["x86_64"]

    assert answered(program, table["clone"][0] or 0, audit, {0: 17}) == 0
    assert answered(program, table["clone"][0] or 0, audit, {0: 0x10000000}) == errno.EPERM
    assert answered(program, table["kill"][0] or 0, audit, {0: 99}) == 0
    assert answered(program, table["setitimer"][0] or 0, audit) == 0  # of its forks
    for name in ("socket", "execve", "unlink", "ptrace", "mount"):
        assert answered(program, table[name][0] or 0, audit) == errno.EPERM


def answered(
    program: bytes, number: int, audit: int, arguments: Mapping[int, int] | None = None
) -> int:
    """Return what *program* answers a call with: 0 if it passes, else the error number."""
    words = [(arguments or {}).get(index, 0) for index in range(6)]
    data = struct.pack("=IIQ6Q", number, audit, 0, *words)
    rows = list(struct.iter_unpack("HBBI", program))
    at, value = 0, 0
    while True:
        code, if_true, if_false, operand = rows[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x15:
                at += if_true if value == operand else if_false
            case 0x35:
                at += if_true if value >= operand else if_false
            case 0x45:
                at += if_true if value & operand else if_false
            case 0x06:
                return 0 if operand == 0x7FFF0000 else operand & 0xFFFF
            case _:
                raise AssertionError(f"no such instruction: {code:#x}")


def _number(word: str) -> int | None:
    return None if word == "-" else int(word)


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (machine, name)
        for name, numbers in system_calls.TIMERS.items()
        for machine in AUDIT
        if numbers[COLUMNS[machine]] is not None
    ],
)
def test_a_process_without_an_end_may_set_its_own_timer(machine: str, name: str) -> None:
    """cuDNN's, for each question; one that was given a timer sets none."""
    number = system_calls.TIMERS[name][COLUMNS[machine]]
    assert number is not None
    timed = seccomp.program(seccomp.worker_rules(7), machine)
    timing = seccomp.program(seccomp.worker_rules(7, sets_timer=True), machine)

    assert answered(timed, number, AUDIT[machine]) == errno.EPERM
    expected = 0 if name == "setitimer" else errno.EPERM
    assert answered(timing, number, AUDIT[machine]) == expected
