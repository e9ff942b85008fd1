"""Where reserved comes from: one row for every dealing with the driver.

    Program, WatchedAllocator -> Account

The replay is the estimate's own; the allocator's ledger is joined with the program's places and
roles. Pure: no framework, no GPU, no clock, no environment variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from estimator.allocators.ledger import Dealing, Entry, Piece
from estimator.allocators.watched import WatchedAllocator
from estimator.program import Program
from estimator.replay import replay
from estimator.report.records import Account, Picture, Row, Segment, Sum
from estimator.result import Moment
from estimator.trace import EventKind, Phase, Place, Role

ROLE_NAMES: Mapping[int, str] = {
    Role.PARAMETER: "parameters",
    Role.GRADIENT: "gradients",
    Role.OPTIMIZER: "optimizer",
    Role.ACTIVATION: "activations",
    Role.INPUT: "inputs",
    Role.TEMPORARY: "temporary",
    Role.WORKSPACE: "workspace",
    Role.COMMUNICATION: "communication",
}
"""The breakdown's words."""
NOWHERE = Place(step=0, phase=Phase.LOAD, operator="", module="")


def account_of(program: Program, make_allocator: Callable[[], WatchedAllocator]) -> Account:
    """Return the account of *program* on fresh allocators.

    The program is replayed three times: for the ledger, and up to the peaks of reserved and of
    allocated for the pictures of what the segments hold then.

    Raises:
        TraceError: if a tensor is allocated twice, or freed or used while not alive.
    """
    allocator = make_allocator()
    run = replay(program, allocator)
    rows = _rows(program, allocator.entries)
    return Account(
        completed=run.completed,
        allocated_bytes=run.allocated,
        reserved_bytes=run.reserved,
        rows=rows,
        sums=_sums(rows),
        last=picture_at(program, make_allocator(), event=run.reserved_event),
        fullest=picture_at(program, make_allocator(), event=run.allocated_event),
    )


def picture_at(program: Program, allocator: WatchedAllocator, *, event: int) -> Picture:
    """Return what the segments of a fresh *allocator* hold right after *event* of *program*."""
    end = event + 1
    until = replace(
        program, kinds=program.kinds[:end], ids=program.ids[:end], places=program.places[:end]
    )
    replay(until, allocator)
    openings: dict[int, int] = {}
    for row in _rows(program, allocator.entries):
        if row.segment is not None:
            openings.setdefault(row.segment, row.event)
    pieces: dict[int, list[Piece]] = {}
    for piece in allocator.pieces():
        pieces.setdefault(piece.segment, []).append(piece)
    return Picture(
        event=event,
        at=_moment(program, event),
        segments=tuple(
            _segment(held, program.roles, event=openings[number])
            for number, held in sorted(pieces.items())
        ),
    )


def _rows(program: Program, entries: Iterable[Entry]) -> tuple[Row, ...]:
    allocations, emptyings = _events(program)
    rows = []
    for entry in entries:
        miss = entry.miss
        event = emptyings[entry.emptying] if miss is None else allocations[miss.tensor]
        rows.append(_row(program, entry, event))
    return tuple(rows)


def _events(program: Program) -> tuple[dict[int, int], list[int]]:
    """Return the event that allocates each tensor, and those that empty the cache."""
    allocations: dict[int, int] = {}
    emptyings = []
    for event, kind in enumerate(program.kinds):
        if kind == EventKind.ALLOC:
            allocations[program.ids[event]] = event
        elif kind == EventKind.EMPTY_CACHE:
            emptyings.append(event)
    return allocations, emptyings


def _row(program: Program, entry: Entry, event: int) -> Row:
    miss = entry.miss
    common = Row(
        event=event,
        at=_moment(program, event),
        action=entry.dealing.value,
        bytes=entry.nbytes,
        reserved_bytes=entry.reserved,
        allocated_bytes=entry.allocated,
        live_bytes=entry.requested,
        lost_bytes=entry.allocated - entry.requested,
        cached_bytes=entry.reserved - entry.allocated,
        segment=entry.segment,
    )
    if miss is None:
        return common
    asked = {
        "role": ROLE_NAMES[program.roles[miss.tensor]],
        "request_bytes": miss.nbytes,
        "block_bytes": miss.block,
    }
    if entry.dealing in (Dealing.SEGMENT, Dealing.PAGES):
        asked |= {
            "pool": _pool(entry),
            "stream": entry.stream,
            "cause": miss.cause.value,
            "largest_cached_bytes": miss.largest,
            "pool_cached_bytes": miss.cached,
        }
    return common.model_copy(update=asked)


@dataclass(frozen=True, slots=True)
class _Group:
    """What the rows of one sum share."""

    step: int
    phase: str
    role: str | None
    reason: str


def _sums(rows: Sequence[Row]) -> tuple[Sum, ...]:
    groups: dict[_Group, list[int]] = {}
    for row in rows:
        group = _Group(row.at.step, row.at.phase, row.role, row.cause or row.action)
        groups.setdefault(group, []).append(row.bytes)
    return tuple(
        Sum(
            step=group.step,
            phase=group.phase,
            role=group.role,
            reason=group.reason,
            count=len(sizes),
            bytes=sum(sizes),
        )
        for group, sizes in groups.items()
    )


def _segment(pieces: Sequence[Piece], roles: Sequence[int], *, event: int) -> Segment:
    live: dict[str, int] = {}
    for piece in pieces:
        if piece.tensor is not None:
            name = ROLE_NAMES[roles[piece.tensor]]
            live[name] = live.get(name, 0) + piece.requested
    held = [piece for piece in pieces if piece.tensor is not None]
    free = [piece.nbytes for piece in pieces if piece.is_free]
    idle = [piece for piece in pieces if piece.tensor is None and not piece.is_free]
    first = pieces[0]
    return Segment(
        number=first.segment,
        pool=_pool(first),
        stream=first.stream,
        event=event,
        bytes=sum(piece.nbytes for piece in pieces),
        live=live,
        rounding_bytes=sum(piece.rounded - piece.requested for piece in held),
        rest_bytes=sum(piece.nbytes - piece.rounded for piece in held),
        cached_bytes=sum(free),
        largest_cached_bytes=max(free, default=0),
        waiting_bytes=sum(piece.nbytes for piece in idle),
    )


def _pool(of: Entry | Piece) -> str:
    return "small" if of.is_small else "large"


def _moment(program: Program, event: int) -> Moment:
    places = program.places
    place = program.place_table[places[event]] if event < len(places) else NOWHERE
    return Moment(
        step=place.step, phase=place.phase.value, operator=place.operator, module=place.module
    )
