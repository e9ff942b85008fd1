"""Where a traced script's files go: not where it says, unless it may write there.

    path, what is done with it -> the path it is done with

What is written lands in a folder of its own, under the path it was meant for, and is found there
when it is read again. Everything else is read where it is.
Not redirected: files that libraries open without Python. For those and for what is deleted there
is `user_sandbox.py`.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_COPIED = 1 << 26
"""Bytes of a file that is copied to be appended to."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ON_FOUND = ("stat", "lstat", "access", "listdir", "scandir", "chdir", "readlink")
_ON_WRITTEN = ("remove", "unlink", "rmdir", "utime", "chmod", "truncate")


class Shadow:
    """Files that were written, in *folder*; what lies in *open_folders* may be written as it is."""

    def __init__(self, folder: Path, open_folders: tuple[str, ...]) -> None:
        self.folder = str(folder)
        self.open_folders = (self.folder, *open_folders)
        self._real_exists = os.path.lexists
        self._mkdir = os.mkdir

    def may_be_written(self, path: str) -> bool:
        """Return whether *path*, absolute, may be written where it is."""
        return any(path == folder or path.startswith(folder + "/") for folder in self.open_folders)

    def found(self, path: Any) -> Any:
        """Return where *path* is to be read: what was written there, if anything was."""
        plain = _absolute(path)
        if plain is None or self.may_be_written(plain):
            return path
        shadow = self.folder + plain
        return shadow if self._real_exists(shadow) else path

    def written(self, path: Any, *, keeps: bool = False) -> Any:
        """Return where *path* is to be written. *keeps*: what is there is copied first.

        Raises:
            FileNotFoundError: if there is no folder to write to.
        """
        plain = _absolute(path)
        if plain is None or self.may_be_written(plain):
            return path
        shadow, parent = self.folder + plain, os.path.dirname(plain)  # noqa: PTH120 (patched below)
        if not self._real_exists(os.path.dirname(shadow)):  # noqa: PTH120
            if not self._real_exists(parent):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), plain)
            self._make(os.path.dirname(shadow))  # noqa: PTH120
        is_there = keeps and not self._real_exists(shadow) and os.path.isfile(plain)  # noqa: PTH113
        if is_there and os.path.getsize(plain) <= MOST_COPIED:  # noqa: PTH202
            shutil.copyfile(plain, shadow)
        return shadow

    def _make(self, folder: str) -> None:
        if not self._real_exists(folder):
            self._make(os.path.dirname(folder))  # noqa: PTH120
            self._mkdir(folder)


def redirect(shadow: Shadow) -> None:
    """Let files of this process be those of *shadow* from now on."""
    own_open, own_os_open, own_mkdir = io.open, os.open, os.mkdir
    own_rename, own_replace = os.rename, os.replace

    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if any(letter in mode for letter in "wax+"):
            return own_open(shadow.written(file, keeps="w" not in mode), mode, *args, **kwargs)
        return own_open(shadow.found(file), mode, *args, **kwargs)

    def os_opened(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if kwargs.get("dir_fd") is not None:
            return own_os_open(path, flags, *args, **kwargs)
        place = shadow.written(path, keeps=True) if flags & _WRITING else shadow.found(path)
        return own_os_open(place, flags, *args, **kwargs)

    def made(path: Any, *args: Any, **kwargs: Any) -> None:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        own_mkdir(shadow.written(path), *args, **kwargs)

    builtins.open = io.open = opened
    changes: dict[str, Callable[..., Any]] = {
        "open": os_opened,
        "mkdir": made,
        "rename": lambda a, b, **k: own_rename(shadow.found(a), shadow.written(b), **k),
        "replace": lambda a, b, **k: own_replace(shadow.found(a), shadow.written(b), **k),
    }
    for name in (*_ON_FOUND, *_ON_WRITTEN):
        changes[name] = _on_found(getattr(os, name), shadow)
    for name, function in changes.items():
        setattr(os, name, function)


def _on_found(own: Callable[..., Any], shadow: Shadow) -> Callable[..., Any]:
    def function(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("dir_fd") is not None:
            return own(path, *args, **kwargs)
        return own(shadow.found(path), *args, **kwargs)

    return function


def _absolute(path: Any) -> str | None:
    """Return *path* as an absolute one, None for a descriptor."""
    if isinstance(path, int):
        return None
    text = os.fspath(path)
    text = os.fsdecode(text) if isinstance(text, bytes) else text
    return os.path.normpath(os.path.join(os.getcwd(), text))  # noqa: PTH109, PTH118 (fast, patched)
