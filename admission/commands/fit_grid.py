"""Batch by sequence by card, as a table of verdicts.

    JobSpec, batches, sequences, Devices -> Grid -> JSON

Each cell is the webhook's verdict on a job that has the card whole. Sequences are asked at once,
batches of one sequence share two traces (`estimator.grid`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from admission.codes import Verdict
from admission.commands.fit_search import LENGTH, changed, length_of, positions_of, verdict_of
from estimator.device import Device
from estimator.errors import EstimatorError
from estimator.result import API_VERSION, Estimate
from estimator.spec import JobSpec
from estimator.workers.api import Job
from estimator.workers.wire import error_document

AROUND = 2
"""Powers of two tried below and above what the job has, where no batches are named."""


class Estimating(Protocol):
    """Who estimates: `estimator.workers.pool.Workers`."""

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return the estimates of one job."""
        ...

    async def grid(
        self, spec: JobSpec, devices: Sequence[Device], batches: Sequence[int]
    ) -> tuple[Estimate, ...]:
        """Return the estimates of one job at several batches."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One job on one card: its estimate, or why there is none."""

    batch: int
    length: int | None
    device: Device
    estimate: Estimate | None
    error: EstimatorError | None = None

    @property
    def verdict(self) -> Verdict:
        """Return the webhook's verdict; unknown where there is no estimate."""
        if self.estimate is None:
            return Verdict.UNKNOWN
        return verdict_of(self.estimate, self.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The cells, by length, then by batch, then by card."""

    spec: JobSpec
    devices: tuple[Device, ...]
    cells: tuple[Cell, ...]

    @property
    def has_way(self) -> bool:
        """Return whether one of them fits."""
        return any(cell.verdict is Verdict.FITS for cell in self.cells)


async def grid_of(
    spec: JobSpec,
    devices: Sequence[Device],
    workers: Estimating,
    *,
    batches: Sequence[int],
    lengths: Sequence[int],
) -> Grid:
    """Return the table of *spec*; what is not named is taken around what the job has.

    Raises:
        EstimatorError: if the job cannot be estimated at any of the sizes.
    """
    wanted = tuple(batches) or around(spec.input.batch_size)
    rows: tuple[int | None, ...] = tuple(lengths)
    if not rows:
        (first, *_) = await workers.estimate(spec, devices[:1])
        length = length_of(spec, first)
        rows = (None,) if length is None else around(length, most=positions_of(spec), steps=1)
    found = await asyncio.gather(
        *(_row(spec, devices, workers, batches=wanted, length=row) for row in rows)
    )
    cells = tuple(cell for row in found for cell in row)
    errors = [cell.error for cell in cells if cell.error is not None]
    if errors and len(errors) == len(cells):
        raise errors[0]
    return Grid(spec=spec, devices=tuple(devices), cells=cells)


async def _row(
    spec: JobSpec,
    devices: Sequence[Device],
    workers: Estimating,
    *,
    batches: Sequence[int],
    length: int | None,
) -> list[Cell]:
    """Return the cells of one length."""
    pairs = [(batch, device) for batch in batches for device in devices]
    try:
        job = spec if length is None else changed(spec, LENGTH, length)
        estimates = await workers.grid(job, devices, batches)
    except EstimatorError as error:
        return [
            Cell(batch=batch, length=length, device=device, estimate=None, error=error)
            for batch, device in pairs
        ]
    return [
        Cell(batch=batch, length=length, device=device, estimate=found)
        for (batch, device), found in zip(pairs, estimates, strict=True)
    ]


def around(value: int, *, most: int | None = None, steps: int = AROUND) -> tuple[int, ...]:
    """Return powers of two around *value*, and *value* itself, none above *most*."""
    power = 1 << (value.bit_length() - 1)
    found = {max(1, power >> step) for step in range(1, steps + 1)} | {value}
    found |= {power << step for step in range(steps + 1)}
    return tuple(sorted(each for each in found if most is None or each <= max(most, value)))


def grid_document(grid: Grid) -> dict[str, Any]:
    """Return the table as JSON types; what is not known is left out."""
    return {
        "apiVersion": API_VERSION,
        "kind": "FitTable",
        "spec": grid.spec.document(),
        "cells": [_cell_document(cell) for cell in grid.cells],
    }


def _cell_document(cell: Cell) -> dict[str, Any]:
    document: dict[str, Any] = {"gpu": cell.device.name, "batchSize": cell.batch}
    if cell.length is not None:
        document["sequenceLength"] = cell.length
    document["verdict"] = cell.verdict.value
    if cell.error is not None:
        return {**document, "error": error_document(cell.error)}
    assert cell.estimate is not None
    found = cell.estimate
    if cell.device.budget_bytes is not None:
        document["budgetBytes"] = cell.device.budget_bytes
    return {
        **document,
        "least": found.least.device_bytes,
        "enough": found.enough.device_bytes,
        "peak": found.peak.device_bytes,
    }
