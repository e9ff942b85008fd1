"""One address in front of several servers, as a Service is: each connection goes to the next one.

    ports of servers -> a port of loopback that leads to those that listen

A server that stops listening gets no new connection, as a pod that is taken out of its
EndpointSlice; connections that it has stay. Nothing is read of what passes.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections import Counter
from types import TracebackType

from tests.e2e.forwarder import pass_on


class Balancer:
    """Listens for the length of a `with` block."""

    def __init__(self, *targets: int) -> None:
        self._turns = itertools.cycle(targets)
        self._num_targets = len(targets)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self.opened: Counter[int] = Counter()
        """Connections there ever were to each port."""
        self.closed: Counter[int] = Counter()
        """How many of them have ended."""

    @property
    def port(self) -> int:
        """Return the port that leads to all."""
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Balancer:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(self._listener)
        self._threads[0].join()
        for one in self._sockets:
            self._end(one)
        for thread in self._threads:
            thread.join()
        for one in (self._listener, *self._sockets):
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:  # the listener was ended
                return
            self._sockets.append(near)
            self._connect(near)

    def _connect(self, near: socket.socket) -> None:
        """Lead *near* to the next target that listens; end it if none does."""
        for target in itertools.islice(self._turns, self._num_targets):
            try:
                far = socket.create_connection(("127.0.0.1", target))
            except OSError:
                continue
            self._sockets.append(far)
            self._count(self.opened, target)
            thread = threading.Thread(target=self._carry, args=(near, far, target))
            self._threads.append(thread)
            thread.start()
            return
        self._end(near)

    def _carry(self, near: socket.socket, far: socket.socket, target: int) -> None:
        back = threading.Thread(target=pass_on, args=(far, near))
        back.start()
        pass_on(near, far)
        back.join()
        self._count(self.closed, target)

    def _count(self, counter: Counter[int], target: int) -> None:
        with self._lock:
            counter[target] += 1

    @staticmethod
    def _end(one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
