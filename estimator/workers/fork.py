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
from dataclasses import dataclass
from typing import NoReturn

from estimator.cudnn import Edition
from estimator.cudnn.client import Plans
from estimator.errors import EstimatorError, TraceError
from estimator.processes import jail
from estimator.processes.frames import frame, read_frame
from estimator.workers.limits import Limits
from estimator.workers.outcome import is_out_of_memory, memory_error
from estimator.workers.wire import encode_error

Handler = Callable[[bytes, Edition | None], bytes]
"""A request to its answer, with cuDNN to ask if there is one.

Raises an `EstimatorError` to say why there is no answer.
"""

FAILED = 2
"""Exit status of a fork that answered with a bug of ours; its last words hold the traceback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """What a fork holds of the processes around it."""

    request: socket.socket
    words_fd: int
    """Where it writes its last words."""
    cudnn: socket.socket | None = None
    """To the cuDNN process, if there is one."""


def run_fork(lines: Lines, limits: Limits, handler: Handler, *, template: int) -> NoReturn:
    """Answer the one request on *lines* and end this process."""
    status = 1
    try:
        for standard in (1, 2):
            os.dup2(lines.words_fd, standard)
        jail.die_with_parent(template)
        jail.confine(memory_bytes=limits.memory_bytes, wall_seconds=limits.wall_seconds)
        answer, status = _respond(handler, lines, limits)
        lines.request.sendall(answer)
    finally:
        os._exit(status)


def _respond(handler: Handler, lines: Lines, limits: Limits) -> tuple[bytes, int]:
    """Return the framed answer and the exit status, 0 unless the answer is a bug of ours."""
    plans = Plans(lines.cudnn, limit_seconds=limits.plans_seconds) if lines.cudnn else None
    too_large = frame(encode_error(memory_error(limits)))  # while there is memory
    try:
        return frame(handler(read_frame(lines.request), plans)), 0
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
