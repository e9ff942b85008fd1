"""How a fork that did not answer ended, as an error.

Ended, Limits -> EstimatorError
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from signal import Signals

from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    EstimatorUnavailableError,
    MemoryLimitError,
    TraceError,
)
from estimator.workers.limits import Limits

OUT_OF_MEMORY = ("bad_alloc", "can't allocate memory", "Cannot allocate memory")
"""How C++, PyTorch's CPU allocator and the C library say it."""

_log = logging.getLogger(__name__)
_TIME_SIGNALS = (-Signals.SIGALRM, -Signals.SIGXCPU)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a fork ended. `status` is negative for a signal, None if its template ended first."""

    status: int | None
    words: str = ""
    """The last it wrote to its standard output and error; why it was not made, if it was not."""
    overdue: bool = False
    """The pool ended it, as its own timer had not."""


def log_failure(ended: Ended) -> None:
    """Log how a fork ended, or why none was made, unless it ended well or with its template."""
    if ended.status or (ended.status is None and ended.words):
        facts = {"status": ended.status, "overdue": ended.overdue, "words": ended.words}
        _log.warning("estimator worker failed", extra=facts)


def end_text(status: int) -> str:
    """Return an exit status in words."""
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def end_error(ended: Ended, limits: Limits) -> EstimatorError:
    """Return why there is no answer from a fork that *ended* under *limits*."""
    if ended.overdue or ended.status in _TIME_SIGNALS:
        return EstimateTimeoutError(f"the estimate took longer than its {limits.wall_seconds:g} s")
    if ended.status is None and ended.words:
        return EstimatorUnavailableError(f"no estimator worker could be started ({ended.words})")
    if ended.status is None:
        return EstimatorUnavailableError("the estimator process ended before it answered")
    if is_out_of_memory(ended.words):
        return memory_error(limits)
    if ended.status == -Signals.SIGKILL:
        # Nobody here sent it: we end what is overdue, and that is said above.
        return MemoryLimitError(
            "the estimator worker was ended from outside (signal 9), as by a kernel without memory",
            hint="the machine or the container ran out of memory, or somebody killed the worker",
        )
    how = end_text(ended.status)
    return TraceError(f"the estimator worker ended unexpectedly ({how})")


def unavailable(error: OSError) -> EstimatorUnavailableError:
    """Return *error*, of a limit that our own process met, as that of a question."""
    why = (error.strerror or type(error).__name__).lower()
    _log.warning("estimator worker not started", extra={"error": why})
    return EstimatorUnavailableError(f"no estimator worker could be started ({why})")


def is_out_of_memory(text: str) -> bool:
    """Return whether *text* is how a library reports that it got no memory."""
    return any(known in text for known in OUT_OF_MEMORY)


def memory_error(limits: Limits) -> MemoryLimitError:
    """Return the error of a fork that met its memory limit."""
    mebibytes = limits.memory_bytes >> 20
    return MemoryLimitError(f"the estimate took more than its {mebibytes} MiB of host memory")
