"""A way to a server that can be cut or hang: an outage for one client, while the others go on.

port of a server -> a port of loopback that leads there, or nowhere
"""

from __future__ import annotations

import contextlib
import socket
import threading


class Forwarder:
    """Passes bytes on, both ways, while it is open."""

    def __init__(self, port: int, *, target: int) -> None:
        self._port = port
        self._target = target
        self._listener: socket.socket | None = None
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    @property
    def port(self) -> int:
        """Return the port of loopback."""
        return self._port

    def open(self) -> None:
        """Listen from now on."""
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._start(self._accept, self._listener)

    def hang(self) -> None:
        """Take every connection from now on, and pass nothing on: a server that is stuck."""
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._start(self._hold, self._listener)

    def cut(self) -> None:
        """Refuse who comes, and end every connection there is."""
        listener, self._listener = self._listener, None
        for one in (*([listener] if listener else []), *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in (*([listener] if listener else []), *self._open):
            one.close()
        self._open.clear()
        self._threads.clear()

    def _accept(self, listener: socket.socket) -> None:
        while self._listener is listener:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            self._open += [near, far]
            self._start(pass_on, near, far)
            self._start(pass_on, far, near)

    def _hold(self, listener: socket.socket) -> None:
        while self._listener is listener:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            self._open.append(near)

    def _start(self, target: object, *args: socket.socket) -> None:
        assert callable(target)
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()


def pass_on(source: socket.socket, target: socket.socket) -> None:
    """Send what *source* says to *target* until one of them ends."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
