"""Start a server as a child process, wait until it answers, and stop exactly that one.

    argv -> Server (running and ready) -> nothing left

Never looks for processes by name: a server is stopped by the id this file started.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

POLL_SECONDS = 0.05
READY_SECONDS = 180.0
"""Long enough for anything on any machine: nothing waits longer than it has to."""
STOP_SECONDS = 30.0
FETCH_SECONDS = 15.0
TAIL_LINES = 25
START_ATTEMPTS = 3

LOWEST_PORT, SPAN = 10_000, 10_000
LOCAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""Ports the kernel chooses from; ours are below, or at random where it leaves none there."""

NO_PROXY = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
"""A proxy of the machine's must not be asked for what listens on loopback."""

DIE_WITH_PARENT = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1  # linux/prctl.h
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Becomes the server after asking the kernel to kill it when the test run dies.

A program of its own, because subprocess's `preexec_fn` is not safe once there are threads.
"""


Started = TypeVar("Started")


class ServerError(Exception):
    """A server did not start, or died; the message ends with the last lines of its log."""


class PortTakenError(ServerError):
    """Somebody bound the port between our picking it and the server's binding it."""


@dataclass(frozen=True, slots=True)
class Server:
    """A child process of ours that serves on loopback."""

    name: str
    log: Path
    process: subprocess.Popen[bytes]

    def tail(self) -> str:
        """Return the last lines of the log, for a message."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])

    def stop(self) -> None:
        """End the process and what it left in its own process group, politely first."""
        if self.process.returncode is not None:
            return
        self.process.terminate()
        _wait_for_exit(self.process.pid, seconds=STOP_SECONDS)
        # Not reaped yet, so the id still names our group and nobody else's.
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill(self) -> None:
        """End the process and its group at once, as on a node that dies."""
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Restartable:
    """A server that can be started again as it was."""

    def __init__(self, begin: Callable[[], Server]) -> None:
        self._begin = begin
        self._server = begin()

    def stop(self) -> None:
        """End the process."""
        self._server.stop()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Kill the server for the length of a `with` block; it is ready after it."""
        self._server.kill()
        try:
            yield
        finally:
            self._server = self._begin()


def start(
    name: str,
    argv: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str] | None = None,
) -> Server:
    """Return *argv* started in *directory*, its output added to `<name>.log` there.

    *environment* is all it sees; None is ours.
    """
    log = directory / f"{name}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            _dying_with_parent(argv),
            cwd=directory,
            env={**(os.environ if environment is None else environment), **NO_PROXY},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Server(name, log, process)


def wait_until_ready(
    server: Server, is_ready: Callable[[], bool], *, seconds: float = READY_SECONDS
) -> None:
    """Return once *is_ready* holds.

    Raises:
        PortTakenError: if the server died because its port was taken.
        ServerError: if it died of something else or is not ready in time.
    """
    deadline = time.monotonic() + seconds
    while not is_ready():
        status = server.process.poll()
        if status is not None:
            tail = server.tail()
            taken = "address already in use" in tail.lower()
            error = PortTakenError if taken else ServerError
            raise error(f"{server.name} ended with status {status}\n{tail}")
        if time.monotonic() > deadline:
            tail = server.tail()
            raise ServerError(f"{server.name} is not ready after {seconds:.0f} s\n{tail}")
        time.sleep(POLL_SECONDS)


def start_ready(
    name: str, argv: Sequence[str], *, directory: Path, is_ready: Callable[[], bool]
) -> Server:
    """Return *argv* started, once *is_ready* holds; nothing is left running if it never does.

    Raises:
        PortTakenError: if it died because its port was taken.
        ServerError: if it died of something else or is not ready in time.
    """
    server = start(name, argv, directory=directory)
    try:
        wait_until_ready(server, is_ready)
    except BaseException:
        server.stop()
        raise
    return server


def poll_until(condition: Callable[[], bool], *, what: str, seconds: float = READY_SECONDS) -> None:
    """Return once *condition* holds.

    Raises:
        TimeoutError: if it does not in time; the message says *what* did not happen.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(POLL_SECONDS)


def answers(url: str, *, authority: Path | None = None) -> bool:
    """Return whether *url* answers 200."""
    try:
        fetch(url, authority=authority)
    except OSError:  # refused, reset, late, not trusted, or another status
        return False
    return True


def fetch(url: str, *, authority: Path | None = None) -> bytes:
    """Return what *url* on loopback answers; *authority* is the CA file to check HTTPS with.

    Without *authority* the certificate is not checked: the answer is used as a sign of life only.

    Raises:
        OSError: if there is no answer or its status is an error.
    """
    context = ssl.create_default_context(cafile=authority)
    if authority is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    with opener.open(url, timeout=FETCH_SECONDS) as response:
        return bytes(response.read())


def retrying_ports(begin: Callable[[], Started]) -> Started:
    """Return what *begin* starts, begun again if a port it picked was taken meanwhile.

    Raises:
        PortTakenError: if that happens every time.
    """
    for _ in range(START_ATTEMPTS - 1):
        try:
            return begin()
        except PortTakenError:
            continue
    return begin()


def free_ports(count: int) -> tuple[int, ...]:
    """Return *count* different loopback ports that nobody listens on now.

    The kernel gives none of them to anybody who asks for any port, as a connection does: it would
    be taken before its server binds it (ip(7), ip_local_port_range).
    """
    kernels = LOCAL_PORTS.read_text().split()[0] if LOCAL_PORTS.exists() else "32768"
    found: set[int] = set()
    while len(found) < count:
        port = random.randrange(LOWEST_PORT, max(int(kernels), LOWEST_PORT + SPAN))
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.add(port)
    return tuple(found)


def _dying_with_parent(argv: Sequence[str]) -> list[str]:
    """Return the command that becomes *argv*; Linux only, elsewhere *argv* itself."""
    if sys.platform != "linux":
        return list(argv)
    return [sys.executable, "-I", "-S", "-c", DIE_WITH_PARENT, *argv]


def _wait_for_exit(pid: int, *, seconds: float) -> None:
    """Wait until *pid* has ended or time is up, without reaping it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return
        time.sleep(POLL_SECONDS)
