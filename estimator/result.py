"""The answer: how much memory one rank of a job needs on one card.

    Replay, Overheads, intervals -> Estimate -> JSON (docs/contracts.md)

Sizes are bytes. `least <= enough` and `least <= peak <= most`, each in its own metric.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from estimator.trace import Method

API_VERSION = "vramgate.dev/v1"


class Record(BaseModel):
    """Base of every part of an answer: frozen, written as camelCase."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
    )


class DeviceFacts(Record):
    """The card the estimate is for; capacities are absent for a generic card."""

    name: str
    compute_capability: str
    total_bytes: int | None = None
    reservation_bytes: int = 0
    usable_bytes: int | None = None
    budget_bytes: int | None = None


class Least(Record):
    """Lower end of the smallest budget in which the job completes: reject on this."""

    reserved_bytes: int
    device_bytes: int


class Enough(Record):
    """Upper end of that same smallest budget: a job fits by this."""

    device_bytes: int


class Usage(Record):
    """`allocated` as the framework counts, `reserved` as its allocator holds, `device` as NVML."""

    allocated_bytes: int
    reserved_bytes: int
    device_bytes: int


class Breakdown(Record):
    """What is alive at the moment of maximum allocated. Adds up to `peak.deviceBytes`."""

    parameters: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    inputs: int = 0
    temporary: int = 0
    workspace: int = 0
    communication: int = 0
    cached: int = 0
    context: int = 0
    libraries: int = 0
    other: int = 0

    def total(self) -> int:
        """Return the sum of all parts."""
        return sum(getattr(self, name) for name in type(self).model_fields)


class Moment(Record):
    """Where in the run something happened."""

    step: int
    phase: str
    operator: str
    module: str


class Rank(Record):
    """One distinct rank of the job."""

    rank: int
    stage: int
    least: Least
    enough: Enough
    peak: Usage
    most: Usage


class AssumptionNote(Record):
    """A value taken for granted."""

    code: str
    path: str
    value: str
    reason: str


class UnknownNote(Record):
    """Something not known or not modelled that may move the figure."""

    code: str
    path: str
    reason: str


class Estimate(Record):
    """The contract's Estimate. `spec` is the normalised JobSpec."""

    api_version: str = API_VERSION
    kind: str = "Estimate"
    spec: dict[str, Any]
    spec_digest: str
    device: DeviceFacts
    least: Least
    enough: Enough
    peak: Usage
    most: Usage
    preallocated_bytes: int | None = None
    allocator_limit_bytes: int | None = None
    breakdown: Breakdown
    peak_at: Moment
    reserved_at: Moment
    ranks: tuple[Rank, ...]
    method: Method
    assumptions: tuple[AssumptionNote, ...] = ()
    unknowns: tuple[UnknownNote, ...] = ()
    warnings: tuple[str, ...] = ()
    elapsed_seconds: float = Field(default=0.0, ge=0)
    version: str = ""

    def document(self) -> dict[str, Any]:
        """Return the estimate as JSON types, absent values left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Knob(Record):
    """One change to the spec that was estimated and fits."""

    path: str
    value: Any
    text: str
    """The change in words: `batch size 160`, `gradient checkpointing`."""


class Fit(Record):
    """What would make a job fit one card, each found by estimating it."""

    device: DeviceFacts
    largest_batch: int | None = None
    """The largest batch whose `enough` is within the budget; absent if not even one fits."""
    knobs: tuple[Knob, ...] = ()
    searched: tuple[str, ...] = ()
    """Which knobs were tried."""

    def document(self) -> dict[str, Any]:
        """Return the answer as JSON types, absent values left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
