"""Refusals of the MXNet frontend, each naming what it is about."""

from __future__ import annotations

from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.notes import UnknownCode

MODEL = "model"


def unsupported(
    message: str,
    *,
    code: UnknownCode = UnknownCode.MODEL_CONFIG,
    path: str = MODEL,
    hint: str | None = None,
) -> UnsupportedJobError:
    """Return the refusal of something that is valid and not modelled."""
    return UnsupportedJobError(f"{path}: {message}", code=code, path=path, hint=hint)


def invalid(message: str, *, path: str = MODEL, hint: str | None = None) -> SpecError:
    """Return the refusal of something the user has to change."""
    return SpecError([Problem(path=path, message=message)], hint=hint)
