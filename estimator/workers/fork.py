"""One fork of a template: limit yourself, read, answer, go on if told to, end.

    socket -> request -> handler -> Reply -> socket

The only place of the workers that catches every exception: whatever happens, there is an answer
or an exit status.
"""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn, Protocol, runtime_checkable

from estimator.cudnn import Edition
from estimator.cudnn.client import Plans
from estimator.errors import EstimatorError, EstimatorUnavailableError, TraceError
from estimator.processes import jail
from estimator.processes.frames import frame, read_frame
from estimator.workers.limits import Limits
from estimator.workers.outcome import is_out_of_memory, memory_error
from estimator.workers.wire import GO_ON, encode_error


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a fork answers, and what it could find out afterwards."""

    answer: bytes
    later: Iterator[bytes] | None = None
    """A frame each, made while nobody waits; begun only if the pool says `GO_ON`."""


Handler = Callable[[bytes, Edition | None], Reply]
"""A request to its reply, with cuDNN to ask if there is one.

Raises an `EstimatorError` to say why there is no answer.
"""


@runtime_checkable
class Starting(Protocol):
    """A handler that needs a process of its own beside each fork."""

    def start(self) -> None:
        """Start it, in a fork that is limited and not isolated yet: afterwards none can be."""


LEAST_PRIORITY = 19
"""The nice value of a fork for which nobody waits."""

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
        reply, status = _confined(handler, lines, limits)
        lines.request.sendall(frame(reply.answer))
        if reply.later is not None and lines.request.recv(len(GO_ON)) == GO_ON:
            status = _go_on(reply.later, lines)
    finally:
        os._exit(status)


def _confined(handler: Handler, lines: Lines, limits: Limits) -> tuple[Reply, int]:
    """Limit and isolate this process; return the reply and the exit status."""
    jail.limit(memory_bytes=limits.memory_bytes, wall_seconds=limits.wall_seconds)
    if isinstance(handler, Starting):
        handler.start()
    isolation = jail.isolate()
    if not (limits.isolation_required and isolation.missing):
        return _respond(handler, lines, limits)
    lacks = " and ".join(isolation.missing)
    error = EstimatorUnavailableError(
        f"this kernel gives no {lacks}, and nothing is estimated without",
        hint="`workers.isolation: preferred` goes on without",
    )
    return Reply(answer=encode_error(error)), 0


def _go_on(later: Iterator[bytes], lines: Lines) -> int:
    """Send what *later* brings, behind everybody else, and return the exit status.

    The pool ends it after `spare_seconds`; its own timer, of its first question, stays as it is.
    """
    os.nice(LEAST_PRIORITY)
    if lines.cudnn is not None:
        lines.cudnn.close()
    try:
        for each in later:
            lines.request.sendall(frame(each))
    except MemoryError:
        return 0
    except Exception as error:
        if is_out_of_memory(str(error)):
            return 0
        traceback.print_exc()
        return FAILED
    return 0


def _respond(handler: Handler, lines: Lines, limits: Limits) -> tuple[Reply, int]:
    """Return the reply and the exit status, 0 unless the answer is a bug of ours."""
    plans = Plans(lines.cudnn, limit_seconds=limits.plans_seconds) if lines.cudnn else None
    too_large = Reply(answer=encode_error(memory_error(limits)))  # while there is memory
    try:
        return handler(read_frame(lines.request), plans), 0
    except EstimatorError as error:
        return Reply(answer=encode_error(error)), 0
    except MemoryError:
        return too_large, 0
    except Exception as error:
        if is_out_of_memory(str(error)):
            return too_large, 0
        traceback.print_exc()  # heard by the template, logged by the pool
        text = f"the estimator failed with a {type(error).__name__}"
        return Reply(answer=encode_error(TraceError(text))), FAILED
