"""One template process as the pool sees it.

fork orders -> Fork -> Ended
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from estimator.processes.jail import Isolation
from estimator.workers.child import Child
from estimator.workers.limits import Limits
from estimator.workers.outcome import Ended
from estimator.workers.wire import error_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What a template says of itself once it has imported everything."""

    import_seconds: float
    rss_bytes: int
    num_threads: int
    """One, or forks of it may hang."""
    confined: bool
    """The kernel denies its forks sockets, programs, changes of files and other processes."""
    landlock: int
    """ABI of the Landlock that keeps its forks to the program's own files, 0 for none."""

    @property
    def isolation(self) -> Isolation:
        """Return what the kernel gives of the isolation of a fork."""
        return Isolation(system_calls=self.confined, files=self.landlock)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """One fork: its request socket, and how it ended once it has."""

    request: socket.socket
    ended: asyncio.Future[Ended]
    number: int
    template: TemplateProcess


@dataclass(slots=True, kw_only=True)
class _Entry:
    fork: Fork
    timer: asyncio.TimerHandle
    pid: int | None = None
    overdue: bool = False
    is_spare: bool = False


class TemplateProcess(Child[Readiness]):
    """A running template; `fork` starts a worker."""

    def __init__(self, framework: str, *, prepare: str, limits: Limits) -> None:
        self._forks: dict[int, _Entry] = {}
        self._next = 0
        arguments = ["--framework", framework, "--prepare", prepare]
        super().__init__("estimator.workers.template", arguments, limits=limits, descriptors=())

    @property
    def num_forks(self) -> int:
        """Return how many forks that somebody waits for have not ended."""
        return sum(not entry.is_spare for entry in self._forks.values())

    def fork_pids(self) -> tuple[int, ...]:
        """Return the process ids of the forks that have not ended."""
        return tuple(entry.pid for entry in self._forks.values() if entry.pid is not None)

    def fork(self, cudnn: socket.socket | None = None) -> Fork:
        """Order a fork, which gets *cudnn*, and return this side of it.

        Raises:
            OSError: if the template ended.
        """
        limits = self._limits
        number = self._next
        self._next += 1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        order = orjson.dumps({"fork": number, "limits": asdict(limits)})
        with theirs:
            sockets = (theirs,) if cudnn is None else (theirs, cudnn)
            try:
                socket.send_fds(self._control, [order], [each.fileno() for each in sockets])
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        ended = self._loop.create_future()
        fork = Fork(request=ours, ended=ended, number=number, template=self)
        wait = limits.wall_seconds + limits.kill_seconds
        timer = self._loop.call_later(wait, self._end_overdue, number)
        self._forks[number] = _Entry(fork=fork, timer=timer)
        return fork

    def set_aside(self, fork: Fork) -> None:
        """Count *fork* no longer: it has answered, and goes on for nobody, for so long."""
        if (entry := self._forks.get(fork.number)) is not None:
            entry.is_spare = True
            entry.timer.cancel()
            wait = self._limits.spare_seconds
            entry.timer = self._loop.call_later(wait, self._end_overdue, fork.number)

    def end(self, fork: Fork) -> None:
        """Order the end of *fork*, before any fork ordered later."""
        if fork.number in self._forks:
            self._order_end(fork.number)

    def _order_end(self, number: int) -> bool:
        """Return whether the template was told to end the fork; if it cannot be, it is ended."""
        try:
            self._control.send(orjson.dumps({"kill": number}))
        except OSError:
            self.kill()
            return False
        return True

    def _end_overdue(self, number: int) -> None:
        """End a fork its own timer did not end; at the second call, its template."""
        entry = self._forks[number]
        is_second_call, entry.overdue = entry.overdue, True
        if is_second_call or entry.pid is None:
            self.kill()
            return
        if not self._order_end(number):
            return
        entry.timer = self._loop.call_later(self._limits.kill_seconds, self._end_overdue, number)

    def _note(self, message: Mapping[str, Any]) -> None:
        match message:
            case {"ready": facts}:
                self._started(Readiness(**facts))
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

    def _lose(self, status: int) -> None:  # noqa: ARG002 (its forks only know that it ended)
        for number in tuple(self._forks):
            self._finish(number, None)
