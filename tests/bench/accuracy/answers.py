"""What the estimator said to one question, reduced to what is scored.

    Estimate | EstimatorError -> Answer | NoAnswer <-> JSON

Two runs are compared by their JSON, so it holds no clock but `seconds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from estimator.errors import EstimatorError, UnsupportedJobError
from estimator.result import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """One figure of an estimate in each metric; `least` has no `allocated`."""

    allocated: int | None = None
    reserved: int | None = None
    device: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An estimate."""

    least: Sizes
    enough: Sizes
    peak: Sizes
    most: Sizes
    reservation_bytes: int
    usable_bytes: int | None
    breakdown: Mapping[str, int]
    method: str
    assumed: tuple[str, ...] = ()
    """`code path: value` of each assumption."""
    unknown: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """Why there is no estimate."""

    kind: str
    """The kind of error, with the code of what is not modelled."""
    message: str


def answer_of(estimate: Estimate) -> Answer:
    """Return what is scored of *estimate*."""
    least, enough, peak, most = estimate.least, estimate.enough, estimate.peak, estimate.most
    device = estimate.device
    return Answer(
        least=Sizes(reserved=least.reserved_bytes, device=least.device_bytes),
        enough=Sizes(device=enough.device_bytes),
        peak=Sizes(
            allocated=peak.allocated_bytes,
            reserved=peak.reserved_bytes,
            device=peak.device_bytes,
        ),
        most=Sizes(
            allocated=most.allocated_bytes,
            reserved=most.reserved_bytes,
            device=most.device_bytes,
        ),
        reservation_bytes=device.reservation_bytes,
        usable_bytes=device.usable_bytes,
        breakdown=estimate.breakdown.model_dump(),
        method=estimate.method.value,
        assumed=tuple(f"{note.code} {note.path}: {note.value}" for note in estimate.assumptions),
        unknown=tuple(note.code for note in estimate.unknowns),
        seconds=estimate.elapsed_seconds,
    )


def no_answer_of(error: EstimatorError) -> NoAnswer:
    """Return *error* as a reason."""
    kind = error.kind
    if isinstance(error, UnsupportedJobError):
        kind = f"{kind}: {error.code}"
    return NoAnswer(kind=kind, message=error.message)


def document_of(answer: Answer | NoAnswer) -> dict[str, Any]:
    """Return *answer* as JSON types."""
    return {"answer" if isinstance(answer, Answer) else "error": asdict(answer)}


def answer_from(document: Mapping[str, Any]) -> Answer | NoAnswer:
    """Return the answer that `document_of` wrote."""
    if "error" in document:
        return NoAnswer(**document["error"])
    fields = dict(document["answer"])
    for name in ("least", "enough", "peak", "most"):
        fields[name] = Sizes(**fields[name])
    for name in ("assumed", "unknown"):
        fields[name] = tuple(fields[name])
    return Answer(**fields)
