"""How a fork that did not answer ended, as an error.

Ended, Limits -> EstimatorError
"""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals

from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    MemoryLimitError,
    TraceError,
)
from estimator.workers.limits import Limits

OUT_OF_MEMORY = ("bad_alloc", "can't allocate memory", "Cannot allocate memory")
"""How C++, PyTorch's CPU allocator and the C library say it."""

_TIME_SIGNALS = (-Signals.SIGALRM, -Signals.SIGXCPU)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a fork ended. `status` is negative for a signal, None if its template ended first."""

    status: int | None
    words: str = ""
    """The last it wrote to its standard output and error."""
    overdue: bool = False
    """The pool ended it, as its own timer had not."""


def end_text(status: int) -> str:
    """Return an exit status in words."""
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def end_error(ended: Ended, limits: Limits) -> EstimatorError:
    """Return why there is no answer from a fork that *ended* under *limits*."""
    if ended.overdue or ended.status in _TIME_SIGNALS:
        return EstimateTimeoutError(f"the estimate took longer than its {limits.wall_seconds:g} s")
    if is_out_of_memory(ended.words):
        return memory_error(limits)
    if ended.status is None:
        return TraceError("the estimator process ended before it answered")
    hint = None
    if ended.status == -Signals.SIGKILL:
        hint = "signal 9 mostly comes from a kernel that ran out of memory"
    how = end_text(ended.status)
    return TraceError(f"the estimator worker ended unexpectedly ({how})", hint=hint)


def is_out_of_memory(text: str) -> bool:
    """Return whether *text* is how a library reports that it got no memory."""
    return any(known in text for known in OUT_OF_MEMORY)


def memory_error(limits: Limits) -> MemoryLimitError:
    """Return the error of a fork that met its memory limit."""
    mebibytes = limits.memory_bytes >> 20
    return MemoryLimitError(f"the estimate took more than its {mebibytes} MiB of host memory")
