"""What can go wrong between the API server and a verdict.

    AdmissionError
    ├── RequestError        the request is broken: HTTP 400, never `allowed: false`
    ├── SettingsError       the settings file; carries every problem
    ├── ManifestError       a file given to `explain` cannot be read
    ├── PatchError          a patch of ours is not to be sent: it is dropped, the review goes on
    └── ClusterError        the API server refuses, or does not answer: tried again

Everything about the estimate itself is an `EstimatorError`.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.errors import Problem


class AdmissionError(Exception):
    """Base class. `hint`, if present, tells the reader what to do next."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class RequestError(AdmissionError):
    """The API server's (or somebody else's) request is not an AdmissionReview we can answer."""


class SettingsError(AdmissionError):
    """The settings file is not valid. `problems` holds every mistake."""

    def __init__(self, problems: Sequence[Problem], *, hint: str | None = None) -> None:
        super().__init__("\n".join(str(problem) for problem in problems), hint=hint)
        self.problems = tuple(problems)


class ManifestError(AdmissionError):
    """A manifest or node list cannot be read."""


class PatchError(AdmissionError):
    """A patch that we made does not apply, or changes more than it may."""


class ClusterError(AdmissionError):
    """The API server did not do what it was asked. Never holds a body, which may hold a key."""

    def __init__(self, status: int | None, *, said: str = "") -> None:
        """Take the *status*, None if nobody answered, and what was *said*, if it may be told."""
        text = "the API server does not answer" if status is None else f"HTTP {status}"
        super().__init__(f"{text}: {said}" if said else text)
        self.status = status
