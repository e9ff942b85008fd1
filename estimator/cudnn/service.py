"""The loop of the cuDNN process.

    control message + socket -> greeting; batch on that socket -> answers

Single-threaded. One batch of one connection at a time, so that forks share the library.
"""

from __future__ import annotations

import selectors
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from estimator.cudnn import wire
from estimator.cudnn.desk import Desk
from estimator.errors import TraceError
from estimator.processes.frames import HEADER_BYTES, frame, frame_length

MAX_MESSAGE = 1 << 16


@dataclass(slots=True, kw_only=True)
class _Line:
    """One connection, with what of its next batch has arrived."""

    number: int
    connection: socket.socket
    arrived: bytearray = field(default_factory=bytearray)

    def batch(self) -> bytes | None:
        """Return the next batch once it is whole.

        Raises:
            TraceError: if it is too long, or another follows before this one is answered.
        """
        if len(self.arrived) < HEADER_BYTES:
            return None
        length = frame_length(bytes(self.arrived[:HEADER_BYTES]), most=wire.MAX_REQUEST)
        missing = HEADER_BYTES + length - len(self.arrived)
        if missing > 0:
            return None
        if missing < 0:
            raise TraceError("a batch before the last one was answered")
        batch = bytes(self.arrived[HEADER_BYTES:])
        self.arrived.clear()
        return batch


class Service:
    """The loop between the supervisor and the forks."""

    def __init__(self, control: socket.socket, desk: Desk) -> None:
        self._control = control
        self._desk = desk
        self._selector = selectors.PollSelector()

    def serve(self) -> None:
        """Answer until the control socket closes."""
        self._selector.register(self._control, selectors.EVENT_READ, None)
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._hear(key.data)
                elif not self._obey():
                    return

    def _obey(self) -> bool:
        """Take a new connection; return False when there are no more."""
        try:
            message, descriptors, _, _ = socket.recv_fds(self._control, MAX_MESSAGE, 1)
        except ConnectionError:
            return False
        if not message:
            return False
        number = orjson.loads(message)["connect"]
        line = _Line(number=number, connection=socket.socket(fileno=descriptors[0]))
        line.connection.setblocking(False)
        self._selector.register(line.connection, selectors.EVENT_READ, line)
        self._tell({"connected": number})
        self._send(line, wire.encode_greeting(self._desk.release))
        return True

    def _hear(self, line: _Line) -> None:
        """Read what arrived on *line* and answer if it is a whole batch."""
        try:
            piece = line.connection.recv(wire.MAX_REQUEST)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self._drop(line)
            return
        line.arrived += piece
        try:
            batch = line.batch()
            if batch is not None:
                self._send(line, self._desk.respond(batch))
        except (TraceError, wire.WireError):
            self._drop(line)

    def _send(self, line: _Line, payload: bytes) -> None:
        """Send *payload*; who does not read it is not waited for."""
        try:
            line.connection.sendall(frame(payload))
        except OSError:
            self._drop(line)

    def _drop(self, line: _Line) -> None:
        if line.connection.fileno() >= 0:
            self._selector.unregister(line.connection)
            line.connection.close()
            self._tell({"closed": line.number})

    def _tell(self, message: dict[str, Any]) -> None:
        with suppress(ConnectionError):  # the supervisor is gone: the next read says so
            self._control.send(orjson.dumps(message))
