"""What travels between the pool, a template and its forks.

    Ask <-> JSON, Answer | EstimatorError <-> JSON

Requests and answers are frames on a socket of their own, one pair a fork.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import orjson

from estimator.device import Device
from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    EstimatorUnavailableError,
    MemoryLimitError,
    Problem,
    SpecError,
    TraceError,
    UnsupportedJobError,
)
from estimator.notes import UnknownCode
from estimator.report.drawing import JobDrawing
from estimator.report.records import JobAccount
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec, parse_spec

_KINDS: Mapping[str, type[EstimatorError]] = {
    kind.kind: kind
    for kind in (
        TraceError,
        EstimatorUnavailableError,
        EstimateTimeoutError,
        MemoryLimitError,
    )
}

GO_ON = b"+"
"""What the pool writes to a fork that answered and may go on; the end of the socket says no."""
NO_FRAMEWORK = "recorded"
"""The template of jobs that were traced before: it imports no framework."""


class Operation(StrEnum):
    """What a fork is asked for."""

    ESTIMATE = "estimate"
    FIT = "fit"
    ACCOUNT = "account"
    DRAW = "draw"
    """One answer for all cards."""
    GRID = "grid"
    """Estimates at several batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request to a fork."""

    operation: Operation
    spec: JobSpec
    devices: tuple[Device, ...]
    content: bytes | None = None
    """The Trace file of a recorded job."""
    batches: tuple[int, ...] = ()
    """Of `GRID`."""
    kept: tuple[bytes, ...] = ()
    """What was traced of the job at other batches (`tracefile/kept.py`)."""


def encode_ask(ask: Ask) -> bytes:
    """Return *ask* as JSON."""
    return orjson.dumps(ask_document(ask))


def ask_document(ask: Ask) -> dict[str, Any]:
    """Return *ask* as JSON types."""
    content = {} if ask.content is None else {"content": b64encode(ask.content).decode()}
    return {
        "operation": ask.operation,
        "spec": ask.spec.document(),
        "devices": [asdict(device) for device in ask.devices],
        "batches": ask.batches,
        "kept": [b64encode(each).decode() for each in ask.kept],
        **content,
    }


def decode_ask(payload: bytes) -> Ask:
    """Return the request in *payload*."""
    return ask_of(orjson.loads(payload))


def ask_of(document: Mapping[str, Any]) -> Ask:
    """Return the request that `ask_document` wrote."""
    content = document.get("content")
    return Ask(
        operation=Operation(document["operation"]),
        spec=parse_spec(document["spec"]),
        devices=tuple(_device(item) for item in document["devices"]),
        content=None if content is None else b64decode(content),
        batches=tuple(document.get("batches", ())),
        kept=tuple(map(b64decode, document.get("kept", ()))),
    )


def encode_answers(
    answers: Sequence[Estimate | Fit | JobAccount | JobDrawing],
    *,
    kept: Iterable[bytes] = (),
    may_go_on: bool = False,
) -> bytes:
    """Return *answers* as JSON, with what may be *kept* of the traces made for them.

    *may_go_on* says that the fork waits for word whether to trace more.
    """
    contents = [b64encode(each).decode() for each in kept]
    more = {"mayGoOn": True} if may_go_on else {}
    return orjson.dumps({**answers_document(answers), "kept": contents, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class Leavings:
    """What comes with an answer and is for the pool alone."""

    kept: tuple[bytes, ...]
    """What may be kept of the traces made for it; of an error nothing."""
    may_go_on: bool
    """Whether the fork waits for word to trace more."""


def decode_leavings(payload: bytes) -> Leavings:
    """Return what *payload* holds beside its answers or its error."""
    document = orjson.loads(payload)
    kept = tuple(map(b64decode, document.get("kept", ())))
    return Leavings(kept=kept, may_go_on=bool(document.get("mayGoOn")))


def answers_document(answers: Sequence[Estimate | Fit | JobAccount | JobDrawing]) -> dict[str, Any]:
    """Return *answers* as JSON types."""
    return {"answers": [answer.document() for answer in answers]}


def decode_estimates(payload: bytes) -> tuple[Estimate, ...]:
    """Return the estimates in *payload*.

    Raises:
        EstimatorError: if *payload* holds an error instead.
    """
    return tuple(Estimate.model_validate(item) for item in _answers(payload))


def decode_fits(payload: bytes) -> tuple[Fit, ...]:
    """Return the fits in *payload*.

    Raises:
        EstimatorError: if *payload* holds an error instead.
    """
    return tuple(Fit.model_validate(item) for item in _answers(payload))


def decode_accounts(payload: bytes) -> tuple[JobAccount, ...]:
    """Return the accounts in *payload*.

    Raises:
        EstimatorError: if *payload* holds an error instead.
    """
    return tuple(JobAccount.model_validate(item) for item in _answers(payload))


def decode_drawing(payload: bytes) -> JobDrawing:
    """Return the drawing in *payload*.

    Raises:
        EstimatorError: if *payload* holds an error instead.
    """
    (item,) = _answers(payload)
    return JobDrawing.model_validate(item)


def encode_error(error: EstimatorError) -> bytes:
    """Return *error* as JSON."""
    return orjson.dumps({"error": error_document(error)})


def error_document(error: EstimatorError) -> dict[str, Any]:
    """Return *error* as JSON types, absent values left out."""
    document: dict[str, Any] = {"kind": error.kind, "message": error.message}
    if error.hint is not None:
        document["hint"] = error.hint
    if isinstance(error, UnsupportedJobError):
        document |= {"code": error.code.value, "path": error.path}
    if isinstance(error, SpecError):
        document["problems"] = [asdict(problem) for problem in error.problems]
    return document


def error_of(document: Mapping[str, Any]) -> EstimatorError:
    """Return the error that `error_document` wrote."""
    kind, message, hint = document["kind"], document["message"], document.get("hint")
    if kind == SpecError.kind:
        return SpecError([Problem(**item) for item in document["problems"]], hint=hint)
    if kind == UnsupportedJobError.kind:
        code = UnknownCode(document["code"])
        return UnsupportedJobError(message, code=code, path=document["path"], hint=hint)
    return _KINDS[kind](message, hint=hint)


def _answers(payload: bytes) -> list[Any]:
    document = orjson.loads(payload)
    if "error" in document:
        raise error_of(document["error"])
    answers: list[Any] = document["answers"]
    return answers


def _device(item: Mapping[str, Any]) -> Device:
    major, minor = item["compute_capability"]
    return Device(**{**item, "compute_capability": (major, minor)})
