"""A process that has imported one framework, forks for each request and does nothing else.

    python -m estimator.workers.template --framework pytorch --control FD --parent PID

    control message + socket -> fork -> answer on that socket; its end -> control message

Single-threaded: after one backward (PyTorch), one eager operation (TensorFlow) or one client
(JAX) forks of a process break, so every trace happens in a fork. Never reads a request itself.
"""

from __future__ import annotations

import argparse
import errno
import gc
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

from estimator.errors import EstimatorError, TraceError
from estimator.processes import jail
from estimator.processes.usage import resident_bytes
from estimator.workers.fork import Handler, Lines, run_fork
from estimator.workers.limits import Limits
from estimator.workers.wire import error_document

MAX_MESSAGE = 1 << 16
MAX_REASON = 300
LAST_WORDS = 4096
"""How much of what a fork writes to its standard output and error is kept."""


@dataclass(slots=True, kw_only=True)
class _Fork:
    """One fork as its template sees it."""

    number: int
    pid: int
    pidfd: int
    words_fd: int
    words: bytearray = field(default_factory=bytearray)

    def hear(self) -> bool:
        """Read what the fork wrote and return whether it may write more."""
        while True:
            try:
                piece = os.read(self.words_fd, 1 << 16)
            except BlockingIOError:
                return True
            if not piece:
                return False
            self.words = (self.words + piece)[-LAST_WORDS:]

    def close(self) -> None:
        """Close what the template holds of it."""
        os.close(self.pidfd)
        os.close(self.words_fd)


class Template:
    """The loop between the pool and the forks."""

    def __init__(self, control: socket.socket, handler: Handler) -> None:
        self._control = control
        self._handler = handler
        self._forks: dict[int, _Fork] = {}
        self._selector = selectors.PollSelector()

    def serve(self) -> None:
        """Fork for each request until the control socket closes, then end every fork."""
        self._selector.register(self._control, selectors.EVENT_READ, None)
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    if not self._obey():
                        self._end_all()
                        return
                elif key.fd == key.data.pidfd:
                    self._bury(key.data)
                elif key.fd in self._selector.get_map() and not key.data.hear():
                    self._selector.unregister(key.fd)

    def _obey(self) -> bool:
        """Do what one control message says; return False when there are no more."""
        try:
            message, descriptors, _, _ = socket.recv_fds(self._control, MAX_MESSAGE, 2)
        except ConnectionError:
            return False
        if not message:
            return False
        order = orjson.loads(message)
        if "fork" in order:
            with ExitStack() as sockets:
                passed = [sockets.enter_context(socket.socket(fileno=each)) for each in descriptors]
                if not passed:  # the kernel drops what this process has no descriptors for
                    self._refuse(order["fork"], OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
                    return True
                request, *cudnn = passed
                limits = Limits(**order["limits"])
                self._fork(order["fork"], request, next(iter(cudnn), None), limits)
        elif (fork := self._forks.get(order["kill"])) is not None:
            os.kill(fork.pid, signal.SIGKILL)  # not reaped yet: the pid is still its own
        return True

    def _fork(
        self, number: int, request: socket.socket, cudnn: socket.socket | None, limits: Limits
    ) -> None:
        template = os.getpid()
        try:
            words_read, words_write = os.pipe2(os.O_CLOEXEC)
        except OSError as error:
            self._refuse(number, error)
            return
        try:
            pid = os.fork()
        except OSError as error:
            os.close(words_read)
            os.close(words_write)
            self._refuse(number, error)
            return
        if pid == 0:
            os.close(words_read)
            self._leave_to_template()
            lines = Lines(request=request, words_fd=words_write, cudnn=cudnn)
            run_fork(lines, limits, self._handler, template=template)
        os.close(words_write)
        os.set_blocking(words_read, False)
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as error:  # nobody would notice its end
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(words_read)
            self._refuse(number, error)
            return
        fork = _Fork(number=number, pid=pid, pidfd=pidfd, words_fd=words_read)
        self._forks[number] = fork
        self._selector.register(fork.pidfd, selectors.EVENT_READ, fork)
        self._selector.register(fork.words_fd, selectors.EVENT_READ, fork)
        self._tell({"forked": number, "pid": pid})

    def _refuse(self, number: int, error: OSError) -> None:
        """Say that the system has no process, or no descriptor, for a fork."""
        words = (error.strerror or type(error).__name__).lower()
        self._tell({"ended": number, "status": None, "words": words})

    def _leave_to_template(self) -> None:
        """Close, in a fork, what belongs to the template."""
        self._control.close()
        for fork in self._forks.values():
            fork.close()

    def _bury(self, fork: _Fork) -> None:
        """Reap *fork* and tell the pool how it ended."""
        status = os.waitstatus_to_exitcode(os.waitpid(fork.pid, 0)[1])
        fork.hear()
        self._selector.unregister(fork.pidfd)
        if fork.words_fd in self._selector.get_map():
            self._selector.unregister(fork.words_fd)
        fork.close()
        del self._forks[fork.number]
        words = fork.words.decode(errors="replace")
        self._tell({"ended": fork.number, "status": status, "words": words})

    def _end_all(self) -> None:
        for fork in self._forks.values():
            os.kill(fork.pid, signal.SIGKILL)
        for fork in self._forks.values():
            os.waitpid(fork.pid, 0)

    def _tell(self, message: dict[str, Any]) -> None:
        with suppress(ConnectionError):  # the pool is gone: the next read says so
            self._control.send(orjson.dumps(message))


def main() -> None:
    """Import what the command line names, say so, and serve."""
    parser = argparse.ArgumentParser(prog="estimator.workers.template")
    parser.add_argument("--framework", required=True)
    parser.add_argument("--prepare", default="estimator.workers.answer:prepare")
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args()
    jail.die_with_parent(options.parent)
    with socket.socket(fileno=options.control) as control:
        started = time.monotonic()
        try:
            handler = _prepare(options.prepare)(options.framework)
        except EstimatorError as error:
            control.send(orjson.dumps({"failed": error_document(error)}))
            return
        except Exception as error:
            text = f"the {options.framework} frontend does not start: {_first_line(error)}"
            control.send(orjson.dumps({"failed": error_document(TraceError(text))}))
            return
        gc.collect()
        gc.freeze()  # forks do not touch, and so do not copy, what was imported
        control.send(orjson.dumps({"ready": _readiness(time.monotonic() - started)}))
        Template(control, handler).serve()


def _prepare(name: str) -> Callable[[str], Handler]:
    module, _, function = name.partition(":")
    prepare: Callable[[str], Handler] = getattr(import_module(module), function)
    return prepare


def _first_line(error: Exception) -> str:
    """Return the kind of *error* and the first line of what it says, if it says anything."""
    said = str(error).strip().splitlines()
    kind = type(error).__name__
    return f"{kind}: {said[0]}"[:MAX_REASON] if said else kind


def _readiness(import_seconds: float) -> dict[str, Any]:
    limits = Limits()
    isolation = jail.isolation_of_fork(
        memory_bytes=limits.memory_bytes, wall_seconds=limits.wall_seconds
    )
    return {
        "import_seconds": import_seconds,
        "rss_bytes": resident_bytes(),
        "num_threads": sum(1 for _ in Path("/proc/self/task").iterdir()),
        "confined": isolation.system_calls,
        "landlock": isolation.files,
    }


if __name__ == "__main__":
    main()
    os._exit(0)  # libraries' exit handlers have nothing to say here
