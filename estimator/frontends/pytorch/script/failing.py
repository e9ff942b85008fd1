"""A script that cannot be traced: where, what, and what to change.

exception of the script -> SpecError, UnsupportedJobError, EstimateTimeoutError
"""

from __future__ import annotations

from pathlib import Path

from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    Problem,
    SpecError,
    UnsupportedJobError,
)
from estimator.frontends.pytorch.build.job import short
from estimator.frontends.pytorch.script.blame import Source
from estimator.frontends.pytorch.script.noted import Noted
from estimator.frontends.pytorch.script.weights import CannotFakeError
from estimator.notes import UnknownCode

_VALUES = (
    "a number read from the card is 0 here, as nothing is computed: read at {places}; "
    "leave that part out, for instance behind an argument of the script"
)
_HINTS: tuple[tuple[type[BaseException], str], ...] = (
    (
        ModuleNotFoundError,
        "install it beside vramgate, or run from the folder that holds it: the script runs in "
        "this environment",
    ),
    (
        FileNotFoundError,
        "the script reads its data here too: put it there, or name a small sample of it",
    ),
    (ConnectionError, "the script has no network here; --allow network gives it one"),
    (
        PermissionError,
        "libraries of the script write to the folder of the trace alone here; --allow write lets "
        "them write where they say",
    ),
)


def failure(path: Path, source: Source, error: BaseException, noted: Noted) -> EstimatorError:
    """Return what is told of a script that raised *error*."""
    place = source.of_traceback(error.__traceback__) or path.name
    if isinstance(error, UnsupportedJobError):
        return UnsupportedJobError(
            f"{place}: {error.message.removeprefix('model: ')}",
            code=error.code,
            path="script",
            hint=error.hint
            or "sizes or branches that depend on values cannot be traced: bound them, or leave "
            "that part out behind an argument of the script",
        )
    cannot = _cause(error, CannotFakeError)
    if isinstance(cannot, CannotFakeError):
        return UnsupportedJobError(
            f"{place}: {cannot}", code=UnknownCode.FEATURE, path="script", hint=cannot.hint
        )
    denied = _cause(error, PermissionError)
    if denied is not None and "--allow" in str(denied):
        return SpecError([Problem(path=place, message=f"{denied!s:.300}")])
    kind = type(error).__name__
    hint = next((text for known, text in _HINTS if isinstance(error, known)), None)
    if (
        hint is None
        and noted.reads
        and isinstance(error, (ArithmeticError, ValueError, LookupError))
    ):
        hint = _VALUES.format(places=", ".join(list(noted.reads)[:3]))
    message = short(error) if isinstance(error, Exception) else "the script was ended"
    return SpecError([Problem(path=place, message=f"{kind}: {message}")], hint=hint)


def ended_early(path: Path, *, status: object = None) -> EstimatorError:
    """Return what is told of a script that called no model."""
    ended = "ended" if status is None else f"ended itself with status {status!s:.200}"
    return SpecError(
        [Problem(path=path.name, message=f"{ended} before it called a model")],
        hint="its arguments go behind --: vramgate trace train.py -- --epochs 1",
    )


def too_slow(path: Path, seconds: float, place: str) -> EstimatorError:
    """Return what is told of a script that made no step in time."""
    return EstimateTimeoutError(
        f"{place or path.name}: no step of an optimizer within {seconds:g} s",
        hint="give it more with --time-limit, or let it read less data before the first step",
    )


def _cause(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    """Return *error*, or the first behind it, of *kind*."""
    seen: BaseException | None = error
    for _ in range(10):
        if seen is None or isinstance(seen, kind):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None
