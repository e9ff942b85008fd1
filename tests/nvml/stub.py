"""Build our stand-in for NVIDIA's management library, and say what it answers.

    stub.c, a folder -> libnvidia-ml.so.1; cards and processes -> the file that it reads

It is loaded by a child process alone, by `LD_LIBRARY_PATH`.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("stub.c")
LIBRARY = "libnvidia-ml.so.1"

LOST, TIMEOUT, DRIVER_NOT_LOADED, MISMATCH, UNSUPPORTED = 15, 10, 9, 18, 3
"""Errors of NVML. Source: `nvml.h`, nvmlReturn_t."""


def compiled(directory: Path, *, is_old: bool = False) -> Path:
    """Return *directory* with the library in it; *is_old*: of a driver before R510.

    Raises:
        RuntimeError: if there is no C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("no C compiler: `make test` needs one")
    directory.mkdir(parents=True, exist_ok=True)
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    flags += ["-DOLD"] if is_old else []
    target = directory / LIBRARY
    subprocess.run([compiler, *flags, "-o", str(target), str(SOURCE)], check=True)
    return directory


@dataclass(frozen=True, slots=True)
class Nvml:
    """A library, and the file that says what it answers."""

    folder: Path
    state: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """Return what a child process needs to load it."""
        return {"LD_LIBRARY_PATH": str(self.folder), "NVML_STUB": str(self.state)}

    def say(self, *lines: Sequence[object]) -> None:
        """Let it answer what *lines* say from now on; all of it, or what it said before."""
        text = "".join("\t".join(map(str, line)) + "\n" for line in lines)
        new = self.state.with_suffix(".new")
        new.write_text(text)
        new.replace(self.state)


def card(
    uuid: str, *, total: int, used: int = 0, reserved: int = 0, name: str = "Tesla T4"
) -> Sequence[object]:
    """Return the line of a whole card. All of them come before any instance."""
    return ("card", uuid, name, total, used, reserved)


def instance(index: int, uuid: str, *, number: int, total: int, used: int = 0) -> Sequence[object]:
    """Return the line of a MIG instance of the card *index*."""
    return ("instance", index, uuid, number, total, used)


def process(uuid: str, pid: int, nbytes: int) -> Sequence[object]:
    """Return the line of a process that computes on a card; -1 bytes: not told."""
    return ("process", uuid, pid, nbytes)


def client(uuid: str, pid: int, nbytes: int) -> Sequence[object]:
    """Return the line of a client of MPS on a card."""
    return ("client", uuid, pid, nbytes)


def fail(uuid: str, error: int, function: str = "") -> Sequence[object]:
    """Return the line that lets a card fail, or one function of it."""
    return ("fail", uuid, error, *([function] if function else ()))
