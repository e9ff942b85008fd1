"""What a picture of a job is drawn from, small enough to travel.

    JobSpec, Devices -> JobDrawing -> page, terminal

Sizes are bytes. A drawing holds samples of a run and what is alive at its peak, not the run.
"""

from __future__ import annotations

from typing import Any

from estimator.result import Estimate, Moment, Record, Usage


class Span(Record):
    """Events of one phase of one step that follow each other."""

    step: int
    phase: str
    """Empty where a step has too many phases to tell them apart."""
    first: int
    """Its first event; it ends where the next one begins."""


class Timeline(Record):
    """Memory along the events of a run: columns, one entry a sample.

    Between two samples allocated is never above the higher of the first one's stretch: each
    stretch of events keeps its least and most allocated and its most reserved, exactly.
    """

    num_events: int
    events: tuple[int, ...]
    """The event of each sample, rising; figures are those right after it."""
    reserved: tuple[int, ...]
    live: dict[str, tuple[int, ...]]
    """Block bytes of live tensors by the breakdown's roles; they sum to allocated."""
    moments: tuple[Moment, ...]
    """Places that samples happen at, each once."""
    places: tuple[int, ...]
    """Index into `moments` of each sample."""
    spans: tuple[Span, ...]

    def allocated(self) -> tuple[int, ...]:
        """Return allocated bytes of each sample."""
        columns = tuple(self.live.values())
        return tuple(sum(column[index] for column in columns) for index in range(len(self.events)))


class Branch(Record):
    """What is alive at the peak in one module, with all that is below it."""

    name: str
    """Part of a module's path, `2 smaller`, or the role of tensors that the module itself has."""
    bytes: int
    live: dict[str, int]
    """By role; sums to `bytes`."""
    children: tuple[Branch, ...] = ()
    """The largest first; they sum to `bytes` if there are any."""


class Holding(Record):
    """One tensor that is alive at the peak."""

    bytes: int
    """Of its block."""
    role: str
    born: Moment


class RankDrawing(Record):
    """One distinct rank: its run, and who holds what at the peak."""

    rank: int
    stage: int
    usage: Usage
    """Peak, as in the estimate."""
    context_bytes: int
    libraries_bytes: int
    communication_bytes: int
    other_bytes: int
    """Beside the allocator: with `usage.reservedBytes` they sum to `usage.deviceBytes`."""
    limit_bytes: int | None = None
    """What the allocator could hold, if the run came up against it."""
    peak_event: int
    """The event that first reached `usage.allocatedBytes`."""
    peak_at: Moment
    timeline: Timeline
    tree: Branch
    """Sums to `usage.allocatedBytes`."""
    largest: tuple[Holding, ...]
    """The largest first."""
    num_tensors: int
    """How many are alive at the peak."""

    def beside_bytes(self) -> int:
        """Return what the process holds beside its allocator."""
        return (
            self.context_bytes + self.libraries_bytes + self.communication_bytes + self.other_bytes
        )


class JobDrawing(Record):
    """A job on several cards, and its run on one of them."""

    estimates: tuple[Estimate, ...]
    """One a card, as asked."""
    drawn: int
    """Index of the card whose run is drawn: the smallest that holds it, else the largest."""
    ranks: tuple[RankDrawing, ...]

    @property
    def estimate(self) -> Estimate:
        """Return the estimate of the card whose run is drawn."""
        return self.estimates[self.drawn]

    def document(self) -> dict[str, Any]:
        """Return the drawing as JSON types, absent values left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
