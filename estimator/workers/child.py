"""A child process of the pool, whichever it is.

    Popen + control socket -> ready | EstimatorError; messages; ended

Waits on file descriptors of the event loop: no thread, no polling, no signal handler.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import orjson

from estimator.errors import EstimatorError, EstimatorUnavailableError
from estimator.workers.environment import template_environment
from estimator.workers.limits import Limits
from estimator.workers.outcome import end_text

_MAX_MESSAGE = 1 << 16
Ready = TypeVar("Ready")


class Child(ABC, Generic[Ready]):
    """A running child: `ready` and `ended` are futures. What it says is for the subclass."""

    NAME = "the estimator process"

    def __init__(
        self, module: str, arguments: Sequence[str], *, limits: Limits, descriptors: Sequence[int]
    ) -> None:
        """Start *module* with *arguments*; it inherits its control socket and *descriptors*.

        Raises:
            OSError: if the system has no process or descriptor left for us; then nothing runs.
        """
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._limits = limits
        self.ready: asyncio.Future[Ready] = loop.create_future()
        self.ended: asyncio.Future[int] = loop.create_future()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        try:
            with theirs:
                inherited = (theirs.fileno(), *descriptors)
                arguments = [*arguments, "--control", str(theirs.fileno())]
                self._process = _spawn(module, arguments, inherited)
            self._pidfd = _pidfd(self._process)
        except OSError:
            self._control.close()
            raise
        loop.add_reader(self._control, self._hear)
        loop.add_reader(self._pidfd, self._bury)
        self._timer = loop.call_later(limits.start_seconds, self._end_late_start)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Return whether it may still take orders."""
        return not self.ended.done() and self._control.fileno() >= 0

    def kill(self) -> None:
        """End the process and with it, through the kernel, its forks."""
        if not self.ended.done():
            self._process.kill()  # not reaped yet: the pid is still its own

    async def close(self) -> None:
        """End the process and its forks, and wait for that."""
        self._stop_listening()
        await asyncio.shield(self.ended)

    @abstractmethod
    def _note(self, message: Mapping[str, Any]) -> None:
        """Act on what the process said."""

    @abstractmethod
    def _lose(self, status: int) -> None:
        """End what waits for the process, which has ended with *status*."""

    def _started(self, ready: Ready) -> None:
        self._timer.cancel()
        if not self.ready.done():
            self.ready.set_result(ready)

    def _fail(self, error: EstimatorError) -> None:
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()  # nobody may be waiting for it

    def _end_late_start(self) -> None:
        seconds = self._limits.start_seconds
        self._fail(EstimatorUnavailableError(f"{self.NAME} did not start within {seconds:g} s"))
        self.kill()

    def _hear(self) -> None:
        """Take every control message that has arrived."""
        while self._control.fileno() >= 0:
            try:
                message = self._control.recv(_MAX_MESSAGE)
            except BlockingIOError:
                return
            except ConnectionResetError:
                continue  # it ended with orders unread: said once, before its last words
            except OSError:
                message = b""
            if not message:
                self._stop_listening()
                return
            self._note(orjson.loads(message))

    def _stop_listening(self) -> None:
        """Let go of the control socket: the process ends itself and its forks, or is ended."""
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)
            self._control.close()
            self._timer.cancel()
            self._timer = self._loop.call_later(self._limits.kill_seconds, self.kill)

    def _bury(self) -> None:
        """Reap the process and end everything that waits for it."""
        self._hear()
        self._stop_listening()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._timer.cancel()
        status = self._process.wait()
        self._fail(EstimatorUnavailableError(f"{self.NAME} did not start ({end_text(status)})"))
        self._lose(status)
        self.ended.set_result(status)


def _pidfd(process: subprocess.Popen[bytes]) -> int:
    """Return a descriptor of *process*, which is ended if there is none."""
    try:
        return os.pidfd_open(process.pid)
    except OSError:
        process.kill()
        process.wait()
        raise


def _spawn(
    module: str, arguments: Sequence[str], descriptors: Sequence[int]
) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-P", "-W", "ignore", "-m", module),
        *arguments,
        *("--parent", str(os.getpid())),
    ]
    return subprocess.Popen(
        command,
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=template_environment(os.environ),
        start_new_session=True,
    )
