"""What `vramgate fit -o json` writes of one card.

    Found -> FitDocument -> JSON

`vramgate schema fit` is the schema of this; bytes, as everywhere.
"""

from __future__ import annotations

from typing import Any

from admission.codes import Verdict
from admission.commands.fit_search import Found
from estimator.result import API_VERSION, DeviceFacts, Estimate, Knob, Record


class HoldingCard(DeviceFacts):
    """A listed card that holds the job as it is."""

    enough: int


class FitDocument(Record):
    """What would make a job fit one card, each found by estimating it."""

    api_version: str = API_VERSION
    kind: str = "Fit"
    spec: dict[str, Any]
    spec_digest: str
    device: DeviceFacts
    verdict: Verdict
    """Of the job as it is."""
    least: int
    enough: int
    largest_batch: int | None = None
    """The largest batch whose `enough` is within the budget; absent if not even one fits."""
    largest_sequence_length: int | None = None
    """The same of tokens a sample; absent for a job without sequences, too."""
    sequence_length_step: int | None = None
    """The next longer one that was tried, and does not fit, is at most this much longer."""
    model_positions: int | None = None
    """What the model has positions for; absent if that is not known."""
    cheapest_gpu: HoldingCard | None = None
    """The one with the least memory; absent if no listed card holds the job."""
    knobs: tuple[Knob, ...] = ()
    """Single changes that make it fit; none are looked for where it fits."""
    searched: tuple[str, ...] = ()
    """Which knobs were tried."""
    failures: tuple[str, ...] = ()
    """Why tries ended without an estimate, if it was not the job: they count as not fitting."""


def fit_document(found: Found) -> dict[str, Any]:
    """Return the answer as JSON types; what is not known or not found is left out."""
    estimate, length, cheapest = found.estimate, found.length, found.cheapest
    is_found = length is not None and length.largest is not None
    document = FitDocument(
        spec=estimate.spec,
        spec_digest=estimate.spec_digest,
        device=estimate.device,
        verdict=found.verdict,
        least=estimate.least.device_bytes,
        enough=estimate.enough.device_bytes,
        largest_batch=found.fit.largest_batch,
        largest_sequence_length=length.largest if length else None,
        sequence_length_step=length.step if length and is_found else None,
        model_positions=length.limit if length else None,
        cheapest_gpu=None if cheapest is None else _holding(cheapest),
        knobs=found.knobs,
        searched=found.searched,
        failures=found.failures,
    )
    return document.model_dump(mode="json", by_alias=True, exclude_none=True)


def _holding(estimate: Estimate) -> HoldingCard:
    return HoldingCard(**estimate.device.model_dump(), enough=estimate.enough.device_bytes)
