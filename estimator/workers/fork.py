"""One fork of a template: limit yourself, read, answer, end.

    socket -> request -> handler -> answer -> socket

The only place of the workers that catches every exception: whatever happens, there is an answer
or an exit status.
"""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable
from typing import NoReturn

from estimator.errors import EstimatorError, TraceError
from estimator.workers import jail
from estimator.workers.limits import Limits
from estimator.workers.outcome import is_out_of_memory, memory_error
from estimator.workers.wire import HEADER_BYTES, encode_error, frame, frame_length

Handler = Callable[[bytes], bytes]
"""A request to its answer. Raises an `EstimatorError` to say why there is none."""

FAILED = 2
"""Exit status of a fork that answered with a bug of ours; its last words hold the traceback."""


def run_fork(
    request: socket.socket, words_fd: int, limits: Limits, handler: Handler, *, template: int
) -> NoReturn:
    """Answer the one request on *request* and end this process."""
    status = 1
    try:
        for standard in (1, 2):
            os.dup2(words_fd, standard)
        jail.die_with_parent(template)
        jail.confine(limits)
        answer, status = _respond(handler, request, limits)
        request.sendall(answer)
    finally:
        os._exit(status)


def _respond(handler: Handler, request: socket.socket, limits: Limits) -> tuple[bytes, int]:
    """Return the framed answer and the exit status, 0 unless the answer is a bug of ours."""
    too_large = frame(encode_error(memory_error(limits)))  # while there is memory
    try:
        return frame(handler(_read(request))), 0
    except EstimatorError as error:
        return frame(encode_error(error)), 0
    except MemoryError:
        return too_large, 0
    except Exception as error:
        if is_out_of_memory(str(error)):
            return too_large, 0
        traceback.print_exc()  # heard by the template, logged by the pool
        text = f"the estimator failed with a {type(error).__name__}"
        return frame(encode_error(TraceError(text))), FAILED


def _read(request: socket.socket) -> bytes:
    length = frame_length(_read_exactly(request, HEADER_BYTES))
    return _read_exactly(request, length)


def _read_exactly(request: socket.socket, length: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < length:
        piece = request.recv(length - len(pieces))
        if not piece:
            raise TraceError("the request ended early")
        pieces += piece
    return bytes(pieces)
