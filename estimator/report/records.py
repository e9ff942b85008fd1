"""An account of reserved memory, as it is written.

    ledger, program -> Account -> JSON (`vramgate account -o json`)

Sizes are bytes. The words of `action` and `cause` are `Dealing` and `Cause` in
`allocators/ledger.py`, those of roles are the breakdown's.
"""

from __future__ import annotations

from typing import Any

from estimator.result import (
    API_VERSION,
    AssumptionNote,
    DeviceFacts,
    Moment,
    Record,
    UnknownNote,
    Usage,
)


class Row(Record):
    """One dealing with the driver, and the totals right after it.

    `liveBytes + lostBytes + cachedBytes = reservedBytes`, and the `bytes` of all rows until
    here sum to `reservedBytes`.
    """

    event: int
    """Index into the program's events."""
    at: Moment
    action: str
    bytes: int
    """What was taken, negative if given back."""
    reserved_bytes: int
    """The running total."""
    allocated_bytes: int
    live_bytes: int
    """What live tensors asked for."""
    lost_bytes: int
    """What rounding and unsplittable rests add to that: allocated less live."""
    cached_bytes: int
    """What is in no tensor's block: reserved less allocated."""
    role: str | None = None
    """What the request is for; absent if the job emptied its cache."""
    request_bytes: int = 0
    block_bytes: int = 0
    """The request, rounded."""
    pool: str | None = None
    """`small` or `large`; absent if memory went back."""
    stream: int = 0
    """From 128 on a private pool of a CUDA graph."""
    segment: int | None = None
    """Number of the segment that was taken or grew."""
    cause: str | None = None
    """Why nothing cached served the request; absent if memory went back."""
    largest_cached_bytes: int = 0
    """The largest free block of the request's pool, before."""
    pool_cached_bytes: int = 0
    """All free blocks of the request's pool together, before."""


class Sum(Record):
    """The rows of one step, phase, role and reason."""

    step: int
    phase: str
    role: str | None = None
    reason: str
    """The cause of what was taken, the action of what went back."""
    count: int
    bytes: int


class Segment(Record):
    """What one segment holds. `live + rounding + rest + cached + waiting = bytes`."""

    number: int
    pool: str
    stream: int
    event: int
    """The event that took it, or its first pages."""
    bytes: int
    live: dict[str, int]
    """What live tensors asked for, by role."""
    rounding_bytes: int
    rest_bytes: int
    """What was too small to be split off a block."""
    cached_bytes: int
    largest_cached_bytes: int
    waiting_bytes: int
    """Dead blocks that a second stream may still use."""

    def live_bytes(self) -> int:
        """Return what live tensors asked for."""
        return sum(self.live.values())

    def lost_bytes(self) -> int:
        """Return what rounding and unsplittable rests add to that."""
        return self.rounding_bytes + self.rest_bytes


class Picture(Record):
    """What all segments hold right after one event."""

    event: int
    at: Moment
    segments: tuple[Segment, ...]

    def live(self) -> dict[str, int]:
        """Return what live tensors asked for, by role, over all segments."""
        found: dict[str, int] = {}
        for segment in self.segments:
            for role, nbytes in segment.live.items():
                found[role] = found.get(role, 0) + nbytes
        return found


class Account(Record):
    """Where the reserved memory of one program comes from."""

    completed: bool
    """False if a request failed after every retry; the account is that until then."""
    allocated_bytes: int
    """Peak, as in an estimate."""
    reserved_bytes: int
    rows: tuple[Row, ...]
    sums: tuple[Sum, ...]
    """The rows by step, phase, role and reason, in the order of their first rows."""
    last: Picture
    """After the event that last raised reserved: all that was ever held at once is there."""
    fullest: Picture
    """After the event that first reached `allocatedBytes`: as little of it is idle as ever."""


class JobAccount(Record):
    """The account of a job's expected run on one card."""

    api_version: str = API_VERSION
    kind: str = "Account"
    spec: dict[str, Any]
    spec_digest: str
    device: DeviceFacts
    usage: Usage
    """The peak of the same job's estimate."""
    context_bytes: int
    libraries_bytes: int
    communication_bytes: int
    other_bytes: int
    """Beside the allocator: with `reservedBytes` they sum to `usage.deviceBytes`."""
    limit_bytes: int | None = None
    """What the allocator could hold, if the run came up against it."""
    account: Account
    assumptions: tuple[AssumptionNote, ...] = ()
    unknowns: tuple[UnknownNote, ...] = ()
    version: str = ""

    def document(self) -> dict[str, Any]:
        """Return the account as JSON types, absent values left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
