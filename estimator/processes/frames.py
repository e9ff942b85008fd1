"""Frames between our processes: a length, then that many bytes.

    bytes <-> frame

Neither side trusts a length: both refuse frames over `MAX_BYTES`, or over less where less is meant.
"""

from __future__ import annotations

import socket
import struct

from estimator.errors import TraceError

MAX_BYTES = 32 << 20
_HEADER = struct.Struct(">I")
HEADER_BYTES = _HEADER.size


def frame(payload: bytes) -> bytes:
    """Return *payload* behind its length.

    Raises:
        TraceError: if it is longer than the other side would read.
    """
    if len(payload) > MAX_BYTES:
        raise TraceError(f"{len(payload)} bytes between the processes, {MAX_BYTES} are accepted")
    return _HEADER.pack(len(payload)) + payload


def read_frame(connection: socket.socket, *, most: int = MAX_BYTES) -> bytes:
    """Return the next frame's payload from a blocking *connection*.

    Raises:
        TraceError: if it is longer than *most* or ends early.
        OSError: as the socket does.
    """
    length = frame_length(_read(connection, HEADER_BYTES), most=most)
    return _read(connection, length)


def frame_length(header: bytes, *, most: int = MAX_BYTES) -> int:
    """Return the length that *header* announces.

    Raises:
        TraceError: if it is more than this side reads.
    """
    length = int(_HEADER.unpack(header)[0])
    if length > most:
        raise TraceError(f"{length} bytes between the processes, {most} are accepted")
    return length


def _read(connection: socket.socket, length: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < length:
        piece = connection.recv(length - len(pieces))
        if not piece:
            raise TraceError("the other side ended early")
        pieces += piece
    return bytes(pieces)
