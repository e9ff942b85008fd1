"""Drawings of jobs, made by workers: what a picture needs beside a verdict.

    job, devices -> Workers -> JobDrawing, Fit -> Drawn

What cannot be drawn is said, and costs no verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from admission.values import Judgement, UnitJudgement
from estimator.deferred import Deferred
from estimator.device import Device
from estimator.errors import EstimatorError
from estimator.spec import JobSpec
from estimator.workers.api import spec_of

if TYPE_CHECKING:
    from estimator.report.drawing import JobDrawing
    from estimator.result import Fit
    from estimator.workers import pool
    from estimator.workers.api import Job
else:
    pool = Deferred("estimator.workers.pool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What was found out about one job for its picture."""

    drawing: JobDrawing | None = None
    fit: Fit | None = None
    remarks: tuple[str, ...] = ()
    """Why something is missing."""


class Drawing(Protocol):
    """Who draws: the workers."""

    async def draw(self, job: Job, devices: Sequence[Device], /) -> JobDrawing:
        """Return the estimates of *job* on *devices*, and its run on one of them."""
        ...


async def drawn_job(job: Job, devices: Sequence[Device]) -> Drawn:
    """Return the drawing of *job*, and what would make it fit if the drawn card may not hold it.

    Raises:
        EstimatorError: of the kind that says why there is no estimate.
    """
    workers = pool.Workers()
    try:
        drawing = await workers.draw(job, devices)
        estimate = drawing.estimate
        budget = estimate.device.budget_bytes
        if budget is None or estimate.enough.device_bytes <= budget or not isinstance(job, JobSpec):
            return Drawn(drawing=drawing)
        try:
            (fit,) = await workers.fit(job, [devices[drawing.drawn]])
        except EstimatorError as error:
            return Drawn(
                drawing=drawing, remarks=(f"What would fit is not known: {error.message}",)
            )
        return Drawn(drawing=drawing, fit=fit)
    finally:
        await workers.close()


async def drawn_units(judgement: Judgement, artist: Drawing) -> tuple[Drawn, ...]:
    """Return a drawing for each unit of *judgement* that has an estimate, in order.

    Units of one job on the same cards share one: it is drawn once.
    """
    tasks: dict[tuple[str, tuple[Device, ...]], asyncio.Task[Drawn]] = {}
    found: list[asyncio.Task[Drawn] | None] = []
    for judged in judgement.units:
        job, devices = judged.reading.job, devices_of(judged)
        if job is None or not devices:
            found.append(None)
            continue
        key = (spec_of(job).digest(), devices)
        if key not in tasks:
            tasks[key] = asyncio.create_task(_drawn(job, devices, artist))
        found.append(tasks[key])
    return tuple([Drawn() if task is None else await task for task in found])


async def _drawn(job: Job, devices: Sequence[Device], artist: Drawing) -> Drawn:
    try:
        return Drawn(drawing=await artist.draw(job, devices))
    except EstimatorError as error:
        return Drawn(remarks=(f"The run is not drawn: {error.message}",))


def devices_of(judged: UnitJudgement) -> tuple[Device, ...]:
    """Return the cards that a unit was compared with, each once."""
    found = [one.node_class.device for one in judged.classes if one.estimate is not None]
    return tuple(dict.fromkeys(device for device in found if device is not None))
