"""Which files a process may open, by what lies under which folder: Landlock of the kernel.

paths that may be read, paths that may be changed -> this process, held to them for good

Needs no rights. Also keeps the process from the memory, the environment and the descriptors of
every process outside its domain (ptrace(2) and `/proc/PID`), from new TCP connections (ABI 4), and
from signals and abstract sockets of others (ABI 6). Says 0 where the kernel has none of it.
Source: include/uapi/linux/landlock.h and Documentation/userspace-api/landlock.rst of Linux.
Not covered by the kernel: stat(2), chmod(2), chown(2), times, links that exist.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

from estimator.processes import kernel

_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_ASK_VERSION = 1
_RULE_BENEATH = 1

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_FOLDER = 1 << 3
_CHANGES_OF_FOLDERS = sum(1 << bit for bit in range(4, 13))
_REFER = 1 << 13
_TRUNCATE = 1 << 14
_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE
READ = READ_FILE | READ_FOLDER
_TCP = 0b11
_SCOPED = 0b11
_OPEN_PATH = os.O_PATH | os.O_CLOEXEC


def abi() -> int:
    """Return which version of Landlock the kernel has, 0 for none."""
    return max(0, kernel.call(_CREATE_RULESET, None, 0, _ASK_VERSION))


def changes(version: int) -> int:
    """Return every right to change files that ABI *version* knows."""
    rights = WRITE_FILE | _CHANGES_OF_FOLDERS
    if version >= 2:
        rights |= _REFER
    if version >= 3:
        rights |= _TRUNCATE
    return rights


def restrict(
    *,
    reads: Iterable[str] | None = None,
    writes: Iterable[str] | None = (),
    executes: bool = False,
    connects: bool = False,
) -> int:
    """Hold this process to *reads* and *writes*; return the ABI that does, 0 if none does.

    None: as before, everywhere. What is not there is passed over. *executes*, *connects*: it may
    start programs, open connections. It is kept from the memory of others in any case.
    """
    version = abi()
    if not version or not kernel.control(kernel.SET_NO_NEW_PRIVILEGES, 1):
        return 0
    handled = 0 if executes else EXECUTE
    handled |= 0 if reads is None else READ
    handled |= 0 if writes is None else changes(version)
    ruleset = _ruleset(handled, version, connects=connects)
    if ruleset < 0:
        return 0
    try:
        for path in reads or ():
            _allow(ruleset, path, READ & handled)
        for path in writes or ():
            _allow(ruleset, path, (READ | changes(version)) & handled)
        return version if kernel.call(_RESTRICT_SELF, ruleset, 0) == 0 else 0
    finally:
        os.close(ruleset)


def _ruleset(handled: int, version: int, *, connects: bool) -> int:
    """Return the descriptor of an empty ruleset, or minus the error number."""
    fields = [handled]
    if version >= 4:
        fields.append(0 if connects else _TCP)
    if version >= 6:
        fields.append(0 if connects else _SCOPED)
    attribute = struct.pack(f"={len(fields)}Q", *fields)
    return kernel.call(_CREATE_RULESET, attribute, len(attribute), 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, _OPEN_PATH)
    except OSError:
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112 (no pathlib in a fork)
            rights &= _ON_FILES
        attribute = struct.pack("=Qi", rights, descriptor)
        kernel.call(_ADD_RULE, ruleset, _RULE_BENEATH, attribute, 0)
    finally:
        os.close(descriptor)
