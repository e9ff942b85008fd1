"""The few calls of the kernel that Python has no function for. The only ctypes on the kernel.

number, arguments -> what the kernel says
"""

from __future__ import annotations

import ctypes
import errno

# linux/prctl.h
SET_PARENT_DEATH_SIGNAL = 1
GET_DUMPABLE = 3
SET_DUMPABLE = 4
SET_NAME = 15
GET_NAME = 16
GET_SECCOMP = 21
SET_SECCOMP = 22
CAPABILITY_BOUNDING_SET_READ = 23
SET_NO_NEW_PRIVILEGES = 38
GET_NO_NEW_PRIVILEGES = 39
SET_NAME_OF_MEMORY = 0x53564D41
SECCOMP_MODE_FILTER = 2


class _Program(ctypes.Structure):
    """`struct sock_fprog` of linux/filter.h."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def control(option: int, first: int, second: int = 0) -> bool:
    """Return whether prctl(2) accepted *option*."""
    return _prctl(option, ctypes.c_ulong(first), ctypes.c_ulong(second))


def install_filter(code: bytes) -> bool:
    """Return whether the kernel filters this process's system calls with the BPF program *code*."""
    program = _Program(len(code) // 8, code)
    mode = ctypes.c_ulong(SECCOMP_MODE_FILTER)
    return _prctl(SET_SECCOMP, mode, ctypes.byref(program))


def call(number: int, *arguments: int | bytes | None) -> int:
    """Return what system call *number* returns, or minus the error number.

    Numbers are passed as 64 bits, bytes by their address, None as no address.
    """
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    passed = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    found = int(library.syscall(ctypes.c_long(number), *passed))
    return found if found >= 0 else -(ctypes.get_errno() or errno.EINVAL)


def _prctl(option: int, *arguments: object) -> bool:
    library = ctypes.CDLL(None, use_errno=True)
    zeros = (ctypes.c_ulong(0),) * (4 - len(arguments))
    return int(library.prctl(ctypes.c_int(option), *arguments, *zeros)) == 0
