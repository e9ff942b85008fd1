"""What can go wrong while estimating.

    EstimatorError                  kind
    ├── SpecError                   "spec": the user can fix it; carries every problem found
    ├── UnsupportedJobError         "unsupported": we cannot estimate this yet; says what
    ├── TraceError                  "trace": the tracing itself failed, our bug
    ├── EstimatorUnavailableError   "unavailable": no process could be asked; nothing of the job
    ├── EstimateTimeoutError        "timeout": the time limit ended the worker
    └── MemoryLimitError            "memory": the worker's own memory limit ended it

Messages are lower case, name the path and the value seen, and hold no stack trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from estimator.notes import UnknownCode


class EstimatorError(Exception):
    """Base class. `hint`, if present, tells the reader what to do next."""

    kind: ClassVar[str] = "trace"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake of a document: where, and what is accepted instead."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class SpecError(EstimatorError):
    """The document is not a valid JobSpec. `problems` holds every mistake, in document order."""

    kind = "spec"

    def __init__(self, problems: Sequence[Problem], *, hint: str | None = None) -> None:
        super().__init__("\n".join(str(problem) for problem in problems), hint=hint)
        self.problems = tuple(problems)


class UnsupportedJobError(EstimatorError):
    """The spec is valid, but this part of it is not modelled."""

    kind = "unsupported"

    def __init__(
        self, message: str, *, code: UnknownCode, path: str, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.path = path


class TraceError(EstimatorError):
    """Tracing or replay broke one of our own rules."""

    kind = "trace"


class EstimatorUnavailableError(EstimatorError):
    """There is no process to estimate in now: nothing is said of the job."""

    kind = "unavailable"


class EstimateTimeoutError(EstimatorError):
    """The estimate took longer than its limit and was ended."""

    kind = "timeout"


class MemoryLimitError(EstimatorError):
    """The estimate needed more host memory than its limit and was ended."""

    kind = "memory"
