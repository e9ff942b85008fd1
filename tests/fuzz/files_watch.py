"""Whether what a file says opens, starts, asks or unpickles anything.

    with nothing_outside(): … -> Broken at the first such deed

Modules are imported, and data that we ship is read, at the first need: reading what belongs to the
program is allowed, all else is not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.fuzz.target import Broken

_OWN = tuple(
    str(path) for path in (Path(__file__).parents[2], *map(Path, (sys.prefix, sys.base_prefix)))
)
_DEEDS = frozenset(
    {
        "ctypes.dlopen",
        "os.exec",
        "os.fork",
        "os.link",
        "os.mkdir",
        "os.posix_spawn",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.startfile",
        "os.symlink",
        "os.system",
        "os.truncate",
        "pickle.find_class",
        "shutil.unpack_archive",
        "socket.connect",
        "socket.getaddrinfo",
        "subprocess.Popen",
        "urllib.Request",
        "webbrowser.open",
    }
)
_deeds: list[str] | None = None
"""What was done since the watch began; None while nobody watches."""


def _heard(event: str, arguments: tuple[object, ...]) -> None:
    if _deeds is None:
        return
    if event in _DEEDS or (event == "open" and not _is_own(*arguments)):
        _deeds.append(f"{event} {str(arguments)[:200]}")


def _is_own(path: object, mode: object, flags: object, *_: object) -> bool:
    """Return whether a file of the program is opened to be read."""
    writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    return not writes and os.path.realpath(os.fsdecode(path)).startswith(_OWN)


@cache
def _listening() -> None:
    sys.addaudithook(_heard)


@contextmanager
def nothing_outside() -> Iterator[None]:
    """Watch what is done meanwhile.

    Raises: Broken, also where an exception was on its way.
    """
    global _deeds
    _listening()
    deeds: list[str] = []
    _deeds = deeds
    try:
        yield
    finally:
        _deeds = None
        if deeds:
            raise Broken(f"what was read made us do this: {deeds[0]}")
