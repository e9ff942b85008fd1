"""What the child of `vramgate trace` may not do while a script runs in it.

    leave, folder -> this process, limited

No network, no other programs, no files outside a folder of its own, so much memory. It keeps a
script from doing by mistake what a training run does: it is the person's own code, on their own
machine. What Python asks is answered with what lets it; the kernel denies the same to libraries
that do not ask Python: sockets by seccomp, files and programs by Landlock.
Not prevented: reading. Without Landlock (Linux 5.13 and newer) what libraries write; it is said.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from estimator.processes import landlock
from estimator.processes.jail import deny_network, limit_memory
from estimator.workers.user_files import Shadow, redirect

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PROGRAMS = frozenset(["subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn"])
_CONNECTING = frozenset(["socket.connect", "socket.getaddrinfo", "socket.bind", "socket.sendto"])
_CHANGING = frozenset(
    ["os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink", "os.truncate"]
)
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "WANDB_MODE": "disabled",
    "COMET_MODE": "disabled",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
_ALWAYS_OPEN = ("/dev", "/proc/self")
"""Where a script may write: what lies there is no file of anybody's."""
_QUIET = {"TOKENIZERS_PARALLELISM": "false", "PYTHONDONTWRITEBYTECODE": "1"}


class Leave(StrEnum):
    """What a person lets a traced script do."""

    NETWORK = "network"
    WRITE = "write"
    PROGRAMS = "programs"


def environment_of(leave: frozenset[Leave]) -> dict[str, str]:
    """Return what the child finds in its environment: libraries read it when they are imported."""
    return {**_QUIET, **({} if Leave.NETWORK in leave else _OFFLINE)}


def confine_script(leave: frozenset[Leave], *, folder: Path, memory_bytes: int) -> tuple[str, ...]:
    """Limit this process, for good. What it writes lands in *folder*.

    Return what the kernel does not deny, in words.
    """
    limit_memory(memory_bytes)
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    shadow = Shadow(folder, _ALWAYS_OPEN)
    if Leave.WRITE not in leave:
        redirect(shadow)
    lacks = _denied_by_kernel(leave, folder)
    sys.addaudithook(_guard(leave, shadow))
    return lacks


def _denied_by_kernel(leave: frozenset[Leave], folder: Path) -> tuple[str, ...]:
    """Have the kernel deny what there is no leave for; return what it does not, in words."""
    lacks = []
    if not {Leave.WRITE, Leave.PROGRAMS} <= leave and not landlock.restrict(
        writes=None if Leave.WRITE in leave else (str(folder), *_ALWAYS_OPEN),
        executes=Leave.PROGRAMS in leave,
        connects=Leave.NETWORK in leave,
    ):
        lacks.append(
            "this kernel has no Landlock (Linux 5.13 and newer have it): libraries that do not ask"
            " Python may write files and start programs"
        )
    if Leave.NETWORK not in leave and not deny_network():
        lacks.append("this kernel has no seccomp: libraries that do not ask Python may connect")
    return tuple(lacks)


def _guard(leave: frozenset[Leave], shadow: Shadow) -> Callable[[str, tuple[Any, ...]], None]:
    """Return what Python asks before it opens, starts and connects.

    Raises:
        PermissionError: for what there is no leave for.
    """

    def guard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = (*arguments, None, None)[:3]
            writes = isinstance(flags, int) and flags & _WRITING
            if writes and Leave.WRITE not in leave and not _is_open(path, shadow):
                raise _denied(f"writes {path!s:.200}", Leave.WRITE)
        elif event in _CHANGING:
            paths = [each for each in arguments[:2] if isinstance(each, (str, bytes, os.PathLike))]
            if Leave.WRITE not in leave and not all(_is_open(each, shadow) for each in paths):
                raise _denied(f"changes {paths[0]!s:.200}", Leave.WRITE)
        elif event in _PROGRAMS:
            if Leave.PROGRAMS not in leave:
                raise _denied(f"starts {arguments[0]!s:.200}", Leave.PROGRAMS)
        elif event in _CONNECTING and Leave.NETWORK not in leave:
            raise _denied("opens a connection", Leave.NETWORK)

    return guard


def _is_open(path: Any, shadow: Shadow) -> bool:
    if isinstance(path, int) or path is None:
        return True
    text = os.fsdecode(os.fspath(path))
    return shadow.may_be_written(os.path.abspath(text))  # noqa: PTH100 (no objects in a hook)


def _denied(what: str, leave: Leave) -> PermissionError:
    return PermissionError(
        f"the script {what}, which is not let in a trace; --allow {leave.value} lets it"
    )
