"""Figures and their notes as the contract's Estimate.

    interval, overheads, notes -> Estimate

Arithmetic only: everything was found before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

from estimator.device import Device
from estimator.need import Lowered
from estimator.notes import Assumption, Unknown, UnknownCode
from estimator.overheads import Overheads
from estimator.replay import Replay
from estimator.result import (
    AssumptionNote,
    Breakdown,
    DeviceFacts,
    Enough,
    Estimate,
    Least,
    Moment,
    Rank,
    UnknownNote,
    Usage,
)
from estimator.sharding import Position
from estimator.spec import JobSpec
from estimator.trace import MANAGED_STREAM, Method, Place, Role, Trace
from estimator.units import gib_down, gib_up

VERSION = version("vramgate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The expected run and the ends of the interval around it, in the allocator's bytes."""

    run: Replay
    least_reserved: int
    enough_reserved: int
    most_allocated: int
    most_reserved: int
    last_batch: int = 0
    """What a smaller batch at the end of an epoch may add; `enough_reserved` holds its part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """The four figures of one rank."""

    least: Least
    enough: Enough
    peak: Usage
    most: Usage


def answer(
    *,
    spec: JobSpec,
    device: Device,
    trace: Trace,
    lowered: Lowered,
    overheads: Overheads,
    ends: Ends,
    method: Method,
    allocator_limit: int | None,
    preallocated: int | None = None,
    elapsed_seconds: float,
) -> Estimate:
    """Return the estimate of *spec* on *device*; *allocator_limit* is the job's own.

    *preallocated* is what NVML shows of a job whose allocator takes its memory at the start.
    """
    other = spec.runtime.extra_bytes
    loaders = spec.runtime.data_loader_cuda_workers
    figures = _figures(ends, overheads, other, loaders)
    managed = managed_bytes(trace, device, beside=figures.peak.device_bytes)
    figures = _with_managed(figures, managed)
    other += managed
    return Estimate(
        spec=spec.normalised(),
        spec_digest=spec.digest(),
        device=device_facts(device),
        least=figures.least,
        enough=figures.enough,
        peak=figures.peak,
        most=figures.most,
        preallocated_bytes=preallocated,
        allocator_limit_bytes=allocator_limit,
        breakdown=_breakdown(ends.run, overheads, other + loaders * overheads.context.expected),
        peak_at=_moment(ends.run.allocated_at),
        reserved_at=_moment(ends.run.reserved_at),
        ranks=(
            Rank(
                rank=0,
                stage=0,
                least=figures.least,
                enough=figures.enough,
                peak=figures.peak,
                most=figures.most,
            ),
        ),
        method=method,
        assumptions=assumption_notes((*lowered.assumptions, *overheads.assumptions)),
        unknowns=unknown_notes((*lowered.unknowns, *overheads.unknowns, *_no_card(device))),
        warnings=(*trace.warnings, *_warnings(device, figures)),
        elapsed_seconds=round(elapsed_seconds, 4),
        version=VERSION,
    )


def worst(estimates: Sequence[Estimate], positions: Sequence[Position]) -> Estimate:
    """Return the estimate of the rank with the largest `least`, with an entry for each rank.

    `most` is the largest of all.
    """
    ranks = tuple(
        estimate.ranks[0].model_copy(update={"rank": position.rank, "stage": position.stage})
        for estimate, position in zip(estimates, positions, strict=True)
    )
    decides = max(estimates, key=lambda estimate: estimate.least.device_bytes)
    most = max((estimate.most for estimate in estimates), key=lambda usage: usage.device_bytes)
    return decides.model_copy(update={"ranks": ranks, "most": most})


def _figures(ends: Ends, overheads: Overheads, other: int, loaders: int) -> _Figures:
    """Return the four figures: the allocator's bytes, overheads and the job's own extras.

    What the allocator, a last smaller batch and the rest may take above expectation have nothing
    to do with each other, so `most` adds them as independent errors add: by their squares.
    `least` and `enough` decide, and add both ends.
    """
    beside = overheads.total
    low = beside.low + other + loaders * overheads.context.low
    expected = beside.expected + other + loaders * overheads.context.expected
    high = beside.high + other + loaders * overheads.context.high
    above = math.hypot(ends.most_reserved - ends.run.reserved, ends.last_batch)
    above_device = math.hypot(above, high - expected)
    return _Figures(
        least=Least(reserved_bytes=ends.least_reserved, device_bytes=ends.least_reserved + low),
        enough=Enough(device_bytes=ends.enough_reserved + high),
        peak=Usage(
            allocated_bytes=ends.run.allocated,
            reserved_bytes=ends.run.reserved,
            device_bytes=ends.run.reserved + expected,
        ),
        most=Usage(
            allocated_bytes=ends.most_allocated,
            reserved_bytes=ends.run.reserved + math.ceil(above),
            device_bytes=ends.run.reserved + expected + math.ceil(above_device),
        ),
    )


def managed_bytes(trace: Trace, device: Device, *, beside: int) -> int:
    """Return what of memory the driver moves is on *device*: as much as has room.

    Source: CUDA C++ Programming Guide, unified memory (pages go to the host when the card is full).
    """
    pairs = zip(trace.sizes, trace.streams, strict=True)
    total = sum(size for size, stream in pairs if stream == MANAGED_STREAM)
    if device.usable_bytes is None:
        return total
    return min(total, max(0, device.usable_bytes - beside))


def _with_managed(figures: _Figures, managed: int) -> _Figures:
    """Return *figures* of a process that has *managed* bytes where it would need none."""
    peak, most = figures.peak, figures.most
    return replace(
        figures,
        peak=peak.model_copy(update={"device_bytes": peak.device_bytes + managed}),
        most=most.model_copy(update={"device_bytes": most.device_bytes + managed}),
    )


def _breakdown(run: Replay, overheads: Overheads, other: int) -> Breakdown:
    live = run.live
    return Breakdown(
        parameters=live[Role.PARAMETER],
        gradients=live[Role.GRADIENT],
        optimizer=live[Role.OPTIMIZER],
        activations=live[Role.ACTIVATION],
        inputs=live[Role.INPUT],
        temporary=live[Role.TEMPORARY],
        workspace=live[Role.WORKSPACE],
        communication=live[Role.COMMUNICATION] + overheads.communication.expected,
        cached=run.reserved - run.allocated,
        context=overheads.context.expected,
        libraries=overheads.libraries.expected,
        other=other,
    )


def device_facts(device: Device) -> DeviceFacts:
    """Return what an answer says of *device*."""
    major, minor = device.compute_capability
    return DeviceFacts(
        name=device.name,
        compute_capability=f"{major}.{minor}",
        total_bytes=device.total_bytes,
        reservation_bytes=device.reservation_bytes,
        usable_bytes=device.usable_bytes,
        budget_bytes=device.budget_bytes,
    )


def _moment(place: Place | None) -> Moment:
    if place is None:
        return Moment(step=0, phase="load", operator="", module="")
    return Moment(
        step=place.step, phase=place.phase.value, operator=place.operator, module=place.module
    )


def _no_card(device: Device) -> tuple[Unknown, ...]:
    if device.total_bytes is not None:
        return ()
    reason = "no card was named: compute capability 8.0 is assumed and there is no verdict"
    return (Unknown(code=UnknownCode.DEVICE, path="gpu", reason=reason),)


def _warnings(device: Device, figures: _Figures) -> tuple[str, ...]:
    budget = device.budget_bytes
    if budget is None or figures.peak.device_bytes <= budget:
        return ()
    peak, card = gib_up(figures.peak.device_bytes), gib_down(budget)
    return (f"the expected run takes {peak} and {device.name} gives it {card}",)


def assumption_notes(notes: Iterable[Assumption]) -> tuple[AssumptionNote, ...]:
    """Return *notes* as written, one for each code and path: the first."""
    # The frontend and the tables may both speak of one value, such as an absent version.
    first = {(note.code, note.path): note for note in reversed(tuple(notes))}
    return tuple(
        AssumptionNote(code=note.code.value, path=note.path, value=note.value, reason=note.reason)
        for note in reversed(first.values())
    )


def unknown_notes(notes: Iterable[Unknown]) -> tuple[UnknownNote, ...]:
    """Return *notes* as written, equal ones once."""
    return tuple(
        UnknownNote(code=note.code.value, path=note.path, reason=note.reason)
        for note in dict.fromkeys(notes)
    )
