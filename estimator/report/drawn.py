"""The picture of a job: the same chain as an estimate, and the expected run once more, watched.

    JobSpec, Devices -> Estimates, Trace -> Program -> RankDrawings -> JobDrawing

Runs in a worker.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.answer import managed_bytes, worst
from estimator.cudnn import PlanSource
from estimator.device import Device
from estimator.frontends import Frontend, load
from estimator.need import lower_for
from estimator.pipeline import Job, allowed_bytes, capacity_bytes, overheads_for, run_on
from estimator.report.drawing import JobDrawing, RankDrawing
from estimator.report.modules import alive_at, largest_of, tree_of
from estimator.report.timeline import moment_of, observed
from estimator.result import Estimate, Usage
from estimator.sharding import Position, RankFrontend, positions_of
from estimator.spec import Framework, JobSpec


def job_drawing(
    spec: JobSpec,
    devices: Sequence[Device],
    plans: PlanSource | None = None,
    *,
    frontend: Frontend | None = None,
) -> JobDrawing:
    """Return the estimates of *spec* on *devices*, and its run on one of them rank by rank.

    Convolutions are asked of *plans* where there is one. *frontend* traces it, by default that
    of its framework.

    Raises:
        EstimatorError: of the kind that says why there is none.
    """
    tracer = frontend or load(spec.framework)
    positions = positions_of(spec)
    jobs = [
        Job(spec=spec, frontend=RankFrontend(tracer, position), plans=plans)
        for position in positions
    ]
    estimates = tuple(worst([job.on(device) for job in jobs], positions) for device in devices)
    drawn = told_by(estimates)
    return JobDrawing(
        estimates=estimates,
        drawn=drawn,
        ranks=tuple(
            rank_on(job, devices[drawn], position)
            for job, position in zip(jobs, positions, strict=True)
        ),
    )


def told_by(estimates: Sequence[Estimate]) -> int:
    """Return which of *estimates* tells most: of the smallest card that holds it, else the largest.

    A card of unknown size is the last to be taken.
    """
    sizes = [estimate.device.budget_bytes or 0 for estimate in estimates]
    holding = [
        index
        for index, (estimate, size) in enumerate(zip(estimates, sizes, strict=True))
        if estimate.enough.device_bytes <= size
    ]
    if holding:
        return min(holding, key=lambda index: sizes[index])
    return max(range(len(sizes)), key=lambda index: sizes[index])


def rank_on(job: Job, device: Device, position: Position) -> RankDrawing:
    """Return the expected run of *job* on *device*, watched: that of its estimate."""
    spec, trace = job.spec, job.trace(device)
    lowered = lower_for(trace, device, spec.runtime, job.plans)
    overheads = overheads_for(spec, device, trace)
    need = job.need(lowered)
    is_capped = run_on(lowered, need, device, spec, overheads) is not need.free
    capacity = capacity_bytes(device, overheads) if is_capped else None
    allowed = allowed_bytes(lowered, device, spec, overheads) if is_capped else None
    found = observed(lowered.program, lowered.allocator(capacity=capacity, allowed=allowed))
    run = found.run
    alive = alive_at(lowered.program, found.blocks, event=run.allocated_event)
    other = (
        spec.runtime.extra_bytes
        + spec.runtime.data_loader_cuda_workers * overheads.context.expected
    )
    beside = run.reserved + overheads.total.expected + other
    other += managed_bytes(trace, device, beside=beside)
    limits = [limit for limit in (capacity, allowed) if limit is not None]
    return RankDrawing(
        rank=position.rank,
        stage=position.stage,
        usage=Usage(
            allocated_bytes=run.allocated,
            reserved_bytes=run.reserved,
            device_bytes=run.reserved + overheads.total.expected + other,
        ),
        context_bytes=overheads.context.expected,
        libraries_bytes=overheads.libraries.expected,
        communication_bytes=overheads.communication.expected,
        other_bytes=other,
        limit_bytes=min(limits, default=None),
        peak_event=run.allocated_event,
        peak_at=moment_of(run.allocated_at),
        timeline=found.timeline,
        tree=tree_of(alive, is_flat=trace.framework == Framework.MXNET),
        largest=largest_of(alive),
        num_tensors=len(alive),
    )
