"""One template process as the pool sees it.

    Popen + control socket -> Readiness | EstimatorError; fork orders -> Fork -> Ended

Waits on file descriptors of the event loop: no thread, no polling, no signal handler.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from estimator.errors import EstimatorError, TraceError
from estimator.workers.environment import template_environment
from estimator.workers.limits import Limits
from estimator.workers.outcome import Ended, end_text
from estimator.workers.wire import error_of

_MAX_MESSAGE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What a template says of itself once it has imported everything."""

    import_seconds: float
    rss_bytes: int
    num_threads: int
    """One, or forks of it may hang."""
    confined: bool
    """The kernel denies its forks new sockets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """One fork: its request socket, and how it ended once it has."""

    request: socket.socket
    ended: asyncio.Future[Ended]


@dataclass(slots=True, kw_only=True)
class _Entry:
    fork: Fork
    timer: asyncio.TimerHandle
    pid: int | None = None
    overdue: bool = False


class TemplateProcess:
    """A running template: `ready` and `ended` are futures, `fork` starts a worker."""

    def __init__(self, framework: str, *, prepare: str, limits: Limits) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._limits = limits
        self._forks: dict[int, _Entry] = {}
        self._next = 0
        self.ready: asyncio.Future[Readiness] = loop.create_future()
        self.ended: asyncio.Future[int] = loop.create_future()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        with theirs:
            self._process = _spawn(framework, prepare=prepare, control=theirs.fileno())
        self._pidfd = os.pidfd_open(self._process.pid)
        loop.add_reader(self._control, self._hear)
        loop.add_reader(self._pidfd, self._bury)
        self._timer = loop.call_later(limits.start_seconds, self._end_late_start)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def num_forks(self) -> int:
        """Return how many forks have not ended."""
        return len(self._forks)

    @property
    def is_alive(self) -> bool:
        """Return whether it may still take orders."""
        return not self.ended.done() and self._control.fileno() >= 0

    def fork_pids(self) -> tuple[int, ...]:
        """Return the process ids of the forks that have not ended."""
        return tuple(entry.pid for entry in self._forks.values() if entry.pid is not None)

    def fork(self) -> Fork:
        """Order a fork and return this side of it.

        Raises:
            OSError: if the template ended.
        """
        limits = self._limits
        number = self._next
        self._next += 1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        order = orjson.dumps({"fork": number, "limits": asdict(limits)})
        with theirs:
            try:
                socket.send_fds(self._control, [order], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        fork = Fork(request=ours, ended=self._loop.create_future())
        wait = limits.wall_seconds + limits.kill_seconds
        timer = self._loop.call_later(wait, self._end_overdue, number)
        self._forks[number] = _Entry(fork=fork, timer=timer)
        return fork

    def kill(self) -> None:
        """End the template and with it, through the kernel, its forks."""
        if not self.ended.done():
            self._process.kill()  # not reaped yet: the pid is still its own

    async def close(self) -> None:
        """End the template and its forks, and wait for that."""
        self._stop_listening()
        await asyncio.shield(self.ended)

    def _end_late_start(self) -> None:
        seconds = self._limits.start_seconds
        self._fail(TraceError(f"the estimator process did not start within {seconds:g} s"))
        self.kill()

    def _end_overdue(self, number: int) -> None:
        """End a fork its own timer did not end; at the second call, its template."""
        entry = self._forks[number]
        is_second_call, entry.overdue = entry.overdue, True
        if is_second_call or entry.pid is None:
            self.kill()
            return
        try:
            self._control.send(orjson.dumps({"kill": number}))
        except OSError:
            self.kill()
            return
        entry.timer = self._loop.call_later(self._limits.kill_seconds, self._end_overdue, number)

    def _hear(self) -> None:
        """Take every control message that has arrived."""
        while self._control.fileno() >= 0:
            try:
                message = self._control.recv(_MAX_MESSAGE)
            except BlockingIOError:
                return
            except OSError:
                message = b""
            if not message:
                self._stop_listening()
                return
            self._note(orjson.loads(message))

    def _note(self, message: Mapping[str, Any]) -> None:
        match message:
            case {"ready": facts}:
                self._timer.cancel()
                self.ready.set_result(Readiness(**facts))
            case {"failed": failure}:
                self._fail(error_of(failure))
            case {"forked": number, "pid": pid}:
                self._forks[number].pid = pid
            case {"ended": number, "status": status, "words": words}:
                self._finish(number, status, words)

    def _finish(self, number: int, status: int | None, words: str = "") -> None:
        entry = self._forks.pop(number)
        entry.timer.cancel()
        ended = Ended(status=status, words=words, overdue=entry.overdue)
        entry.fork.ended.set_result(ended)

    def _fail(self, error: EstimatorError) -> None:
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()  # nobody may be waiting for it

    def _stop_listening(self) -> None:
        """Let go of the control socket: the template ends itself and its forks, or is ended."""
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)
            self._control.close()
            self._timer.cancel()
            self._timer = self._loop.call_later(self._limits.kill_seconds, self.kill)

    def _bury(self) -> None:
        """Reap the template and end everything that waits for it."""
        self._hear()
        self._stop_listening()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._timer.cancel()
        status = self._process.wait()
        self._fail(TraceError(f"the estimator process did not start ({end_text(status)})"))
        for number in tuple(self._forks):
            self._finish(number, None)
        self.ended.set_result(status)


def _spawn(framework: str, *, prepare: str, control: int) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-P", "-W", "ignore", "-m", "estimator.workers.template"),
        *("--framework", framework, "--prepare", prepare),
        *("--control", str(control), "--parent", str(os.getpid())),
    ]
    return subprocess.Popen(
        command,
        pass_fds=(control,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=template_environment(os.environ),
        start_new_session=True,
    )
