"""Build the Kubernetes servers that the end-to-end tests start.

    go.mod, go.sum, Go -> a cache folder with etcd and three Kubernetes servers

The folder is named after everything that decides its content, so a second run finds it and
builds nothing. It lies outside the tree: four binaries weigh about 300 MB.
Never starts a server, never writes into the tree.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

MODULE = Path(__file__).resolve().parent

PACKAGES: Mapping[str, str] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}

KUBERNETES_VERSION = "v1.36.3"

# Without gitVersion the servers call themselves v0.0.0-master and version skew checks misfire.
LINKER_FLAGS = " ".join(
    (
        "-s -w",
        f"-X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}",
        "-X k8s.io/component-base/version.gitMajor=1",
        "-X k8s.io/component-base/version.gitMinor=36",
    )
)


class BuildError(Exception):
    """The servers could not be built; the message says what to do."""


def build() -> Path:
    """Return the folder with the four servers, built first if the cache has none.

    Raises:
        BuildError: if Go is missing or a build fails.
    """
    go = _find_go()
    home = _cache_root() / _digest(_go_version(go))
    binaries = home / "bin"
    if binaries.is_dir():
        _say(f"found {binaries}")
        return binaries
    home.parent.mkdir(parents=True, exist_ok=True)
    with _locked(home.with_suffix(".lock")):
        if not binaries.is_dir():
            _build_into(go, home)
    return binaries


def _build_into(go: str, home: Path) -> None:
    """Build every server beside *home*, then rename: *home* is whole or absent."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=home.parent) as scratch:
        started = time.monotonic()
        for name, package in PACKAGES.items():
            _say(f"building {name} from {package}")
            began = time.monotonic()
            _build_one(go, package, Path(scratch) / "whole" / "bin" / name)
            _say(f"built {name} in {time.monotonic() - began:.0f} s")
        (Path(scratch) / "whole").rename(home)
        _say(f"built {home / 'bin'} in {time.monotonic() - started:.0f} s")


def _build_one(go: str, package: str, output: Path) -> None:
    """Build one main package; Go's own cache and module folders are respected."""
    argv = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
    argv += ["-ldflags", LINKER_FLAGS, "-o", str(output), package]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    done = subprocess.run(argv, cwd=MODULE, env=environment, check=False)
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


def _go_version(go: str) -> str:
    """Return the version of the toolchain that will build, for example `go1.26.8`."""
    argv = [go, "env", "GOVERSION", "GOOS", "GOARCH"]
    done = subprocess.run(argv, cwd=MODULE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"go env ended with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _digest(go_version: str) -> str:
    """Return a name for everything that decides what the binaries contain."""
    digest = hashlib.sha256()
    parts = (
        (MODULE / "go.mod").read_bytes(),
        (MODULE / "go.sum").read_bytes(),
        go_version.encode(),
        LINKER_FLAGS.encode(),
    )
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


def _cache_root() -> Path:
    """Return the folder that holds one folder a build."""
    own = os.environ.get("VRAMGATE_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(own) if own else Path(shared) / "vramgate").absolute() / "controlplane"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold *path* locked; the system lets go of it if the holder dies."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another build is running, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    print(f"controlplane: {text}", file=sys.stderr, flush=True)


def main() -> int:
    """Build, print the folder, and return the exit status."""
    try:
        print(build())
    except BuildError as error:
        _say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
