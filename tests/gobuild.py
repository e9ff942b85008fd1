"""Build the Go programs that tests start, once a machine.

    Module (go.mod, go.sum, main packages), Go -> a cache folder with the programs

The folder is named after everything that decides its content, so a second run finds it and
builds nothing. It lies outside the tree: such programs weigh about 100 MB each.
Never starts what it built, never writes into the tree.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class BuildError(Exception):
    """The programs could not be built; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A Go module of ours that pins programs of others."""

    name: str
    """What its folder in the cache and its messages are called."""

    folder: Path
    """Where its `go.mod` and `go.sum` are."""

    packages: Mapping[str, str]
    """Name of a program -> its main package."""

    linker_flags: str = "-s -w"

    tags: tuple[str, ...] = ()
    """Build tags: what of somebody's program is left out."""

    sources: tuple[str, ...] = ()
    """Files of main packages of ours, below the folder."""


def build(module: Module) -> Path:
    """Return the folder with the programs of *module*, built first if the cache has none.

    Raises:
        BuildError: if Go is missing or a build fails.
    """
    go = _find_go()
    home = cache_root() / module.name / _digest(module, _go_version(go, module))
    binaries = home / "bin"
    if binaries.is_dir():
        _say(module, f"found {binaries}")
        return binaries
    home.parent.mkdir(parents=True, exist_ok=True)
    with _locked(module, home.with_suffix(".lock")):
        if not binaries.is_dir():
            _build_into(go, module, home)
    return binaries


def downloaded(path: str, *, version: str, checksum: str) -> Path:
    """Return the folder with the files of somebody's module, fetched first if Go has it not yet.

    Raises:
        BuildError: if Go is missing, it cannot be fetched, or it is not the module of *checksum*.
    """
    with tempfile.TemporaryDirectory() as folder:  # outside every module of ours
        found = _download(f"{path}@{version}", folder=Path(folder))
    if found.get("Sum") != checksum:
        raise BuildError(f"{path}@{version}: its checksum is {found.get('Sum')}")
    return Path(found["Dir"])


def pinned(path: str, module: Module) -> Path:
    """Return the folder with the files of *path* as *module* requires it: version and checksum.

    Raises:
        BuildError: if Go is missing, or it cannot be fetched.
    """
    return Path(_download(path, folder=module.folder)["Dir"])


def main(module: Module) -> int:
    """Build *module*, print the folder, and return the exit status."""
    try:
        print(build(module))
    except BuildError as error:
        _say(module, str(error))
        return 1
    return 0


@cache
def _download(what: str, *, folder: Path) -> dict[str, str]:
    """Return what `go mod download` says of *what*, asked in *folder*.

    Raises:
        BuildError: if Go is missing, or it cannot be fetched.
    """
    argv = [_find_go(), "mod", "download", "-json", what]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    found: dict[str, str] = json.loads(done.stdout) if done.stdout else {}
    if done.returncode != 0:
        raise BuildError(f"{what}: {found.get('Error') or done.stderr.strip()}")
    return found


def _build_into(go: str, module: Module, home: Path) -> None:
    """Build every program beside *home*, then rename: *home* is whole or absent."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=home.parent) as scratch:
        started = time.monotonic()
        for name, package in module.packages.items():
            _say(module, f"building {name} from {package}")
            began = time.monotonic()
            _build_one(go, module, package, Path(scratch) / "whole" / "bin" / name)
            _say(module, f"built {name} in {time.monotonic() - began:.0f} s")
        (Path(scratch) / "whole").rename(home)
        _say(module, f"built {home / 'bin'} in {time.monotonic() - started:.0f} s")


def _build_one(go: str, module: Module, package: str, output: Path) -> None:
    """Build one main package; Go's own cache and module folders are respected."""
    argv = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
    argv += ["-tags", ",".join(module.tags)] if module.tags else []
    argv += ["-ldflags", module.linker_flags, "-o", str(output), package]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    done = subprocess.run(argv, cwd=module.folder, env=environment, check=False)
    if done.returncode != 0:
        raise BuildError(f"go build {package} ended with status {done.returncode}")


def _find_go() -> str:
    """Return the Go command: the one on PATH, else the one of Go's own installer."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise BuildError(
            "go is neither on PATH nor in /usr/local/go/bin\n"
            "hint: install Go 1.26 or later, or leave the end-to-end tests out with -m 'not e2e'"
        )
    return go


def _go_version(go: str, module: Module) -> str:
    """Return the version of the toolchain that will build, for example `go1.26.8`."""
    argv = [go, "env", "GOVERSION", "GOOS", "GOARCH"]
    done = subprocess.run(argv, cwd=module.folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"go env ended with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _digest(module: Module, go_version: str) -> str:
    """Return a name for everything that decides what the programs contain."""
    digest = hashlib.sha256()
    parts = (
        (module.folder / "go.mod").read_bytes(),
        (module.folder / "go.sum").read_bytes(),
        go_version.encode(),
        module.linker_flags.encode(),
        *(tag.encode() for tag in module.tags),
        *((module.folder / source).read_bytes() for source in module.sources),
    )
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Return the folder that holds one folder a module."""
    own = os.environ.get("VRAMGATE_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(own) if own else Path(shared) / "vramgate").absolute()


@contextmanager
def _locked(module: Module, path: Path) -> Iterator[None]:
    """Hold *path* locked; the system lets go of it if the holder dies."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(module, "another build is running, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(module: Module, text: str) -> None:
    print(f"{module.name}: {text}", file=sys.stderr, flush=True)
