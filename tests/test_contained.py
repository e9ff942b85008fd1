"""Nothing a contained command starts outlives it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.estimator.workers.cases import is_process

ORPHAN = """
import os, signal, subprocess, sys
pid = os.fork()
if pid == 0:
    os.setsid()
    command = "print(flush=True); import signal; signal.pause()"
    orphan = subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE)
    orphan.stdout.readline()
    open(sys.argv[1], "w").write(str(orphan.pid))
    os._exit(0)
os.waitpid(pid, 0)
"""
"""Leaves a process behind, in a session of its own."""


def contained(*arguments: str, patience_seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Return how a contained `python arguments` ended."""
    program = (
        "import sys; from tests.contained import run; "
        f"sys.exit(run(sys.argv[1:], patience_seconds={patience_seconds}))"
    )
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", 128 + 9),
    ],
)
def test_status_is_the_commands(ends: str, status: int) -> None:
    """A signal's is the shell's."""
    assert contained("-c", ends).returncode == status


def test_process_left_behind_is_named_and_ended(tmp_path: Path) -> None:
    """It has no parent, and a session of its own; the run fails for it."""
    done = contained("-c", ORPHAN, str(tmp_path / "pid"), patience_seconds=0.2)

    pid = int((tmp_path / "pid").read_text())
    assert done.returncode == 1
    assert f"left behind: {pid} " in done.stderr
    assert not is_process(pid)


def test_process_that_is_about_to_end_is_waited_for(tmp_path: Path) -> None:
    """What ends by itself is no reason to fail."""
    ends = ORPHAN.replace("signal.pause()", "import time; time.sleep(0.3)")

    done = contained("-c", ends, str(tmp_path / "pid"))

    assert (done.returncode, done.stderr) == (0, "")
    assert not is_process(int((tmp_path / "pid").read_text()))
