"""MXNet in an environment of its own, made once a machine.

    requirements/mxnet-oracle.txt -> the Python that can import MXNet

The folder is named after the lock file, so a second run finds it and installs nothing. It lies
outside the tree, beside the programs that other tests build, and weighs about 300 MB.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.gobuild import cache_root

LOCK = Path(__file__).parents[4] / "requirements" / "mxnet-oracle.txt"
VERSION = (3, 11)
"""numpy 1.23.5 has wheels up to this one."""


def oracle_python() -> Path:
    """Return the interpreter, whose environment is made first if there is none.

    Raises:
        RuntimeError: if there is no Python 3.11.
        CalledProcessError: if the packages cannot be installed.
    """
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    home = cache_root() / "mxnet-oracle" / digest
    python = home / "bin" / "python"
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the system lets go of it if the holder dies
        if not (home / "ready").exists():
            _make(home)
    return python


def _make(home: Path) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    shutil.rmtree(home, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="uv-", dir=home.parent) as cache:
        quiet = ("--quiet", "--cache-dir", cache)
        subprocess.run([uv, "venv", *quiet, "--python", _python(), str(home)], check=True)
        install = [uv, "pip", "install", *quiet, "--python", str(home / "bin" / "python")]
        subprocess.run([*install, "--require-hashes", "--no-deps", "-r", str(LOCK)], check=True)
    (home / "ready").touch()


def _python() -> str:
    if sys.version_info[:2] == VERSION:
        return sys.executable
    found = shutil.which("python3.11")
    if found is None:
        raise RuntimeError(
            "MXNet's environment needs Python 3.11; leave it out with -m 'not mxnet'"
        )
    return found
