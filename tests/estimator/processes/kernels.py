"""Kernels that lack a feature, as a process sees them after a filter on its own system calls.

this process -> the same, for which calls of the feature are not there
"""

from __future__ import annotations

import platform
import struct

from estimator.processes import kernel, system_calls
from estimator.processes.seccomp import ABSENT, ALLOW, Row

_LOAD_WORD = 0x20
_JUMP_EQUAL = 0x15
_FIRST_ARGUMENT = 16
_LANDLOCK_CREATE_RULESET = 444
_COLUMN = {"x86_64": 0, "aarch64": 1}


def pretend_without_landlock() -> None:
    """Have this process and its forks find no Landlock."""
    _filter(((_JUMP_EQUAL, 0, 1, _LANDLOCK_CREATE_RULESET), ABSENT, ALLOW))


def pretend_without_seccomp() -> None:
    """Have the kernel take no other filter of this process and its forks than this one."""
    prctl = system_calls.CHECKED["prctl"][_COLUMN[platform.machine()]]
    assert prctl is not None
    _filter(
        (
            (_JUMP_EQUAL, 1, 0, prctl),
            ALLOW,
            (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT),
            (_JUMP_EQUAL, 0, 1, kernel.SET_SECCOMP),
            ABSENT,
            ALLOW,
        )
    )


def _filter(rows: tuple[Row, ...]) -> None:
    code = b"".join(struct.pack("HBBI", *row) for row in ((_LOAD_WORD, 0, 0, 0), *rows))
    assert kernel.control(kernel.SET_NO_NEW_PRIVILEGES, 1)
    assert kernel.install_filter(code)
