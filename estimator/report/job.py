"""The account of a job: the same chain as an estimate, up to the expected run.

    JobSpec, Devices -> Trace -> Program -> Account -> JobAccounts

Runs in a worker.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.allocators.pytorch import PyTorchPolicy
from estimator.allocators.settings import CachingSettings
from estimator.allocators.watched import WatchedAllocator, watched_allocator
from estimator.answer import (
    VERSION,
    assumption_notes,
    device_facts,
    managed_bytes,
    unknown_notes,
)
from estimator.cudnn import PlanSource
from estimator.device import Device
from estimator.errors import UnsupportedJobError
from estimator.frontends import Frontend, load
from estimator.need import Lowered, lower_for
from estimator.notes import UnknownCode
from estimator.overheads import Overheads
from estimator.pipeline import Job, allowed_bytes, capacity_bytes, overheads_for
from estimator.report.account import account_of
from estimator.report.records import Account, JobAccount
from estimator.result import Usage
from estimator.sharding import RankFrontend
from estimator.spec import JobSpec


def job_accounts(
    spec: JobSpec,
    devices: Sequence[Device],
    plans: PlanSource | None = None,
    *,
    frontend: Frontend | None = None,
) -> tuple[JobAccount, ...]:
    """Return the account of *spec* on each of *devices*, in order.

    Convolutions are asked of *plans* where there is one. *frontend* traces it, by default that
    of its framework.

    Raises:
        EstimatorError: of the kind that says why there is none.
    """
    job = Job(spec=spec, frontend=RankFrontend(frontend or load(spec.framework)), plans=plans)
    return tuple(account_on(job, device) for device in devices)


def account_on(job: Job, device: Device) -> JobAccount:
    """Return the account of *job*'s expected run on *device*."""
    spec, trace = job.spec, job.trace(device)
    lowered = lower_for(trace, device, spec.runtime, job.plans)
    overheads = overheads_for(spec, device, trace)
    found, limit = _expected(lowered, device, spec, overheads)
    other = (
        spec.runtime.extra_bytes
        + spec.runtime.data_loader_cuda_workers * overheads.context.expected
    )
    beside = found.reserved_bytes + overheads.total.expected + other
    other += managed_bytes(trace, device, beside=beside)
    return JobAccount(
        spec=spec.normalised(),
        spec_digest=spec.digest(),
        device=device_facts(device),
        usage=Usage(
            allocated_bytes=found.allocated_bytes,
            reserved_bytes=found.reserved_bytes,
            device_bytes=found.reserved_bytes + overheads.total.expected + other,
        ),
        context_bytes=overheads.context.expected,
        libraries_bytes=overheads.libraries.expected,
        communication_bytes=overheads.communication.expected,
        other_bytes=other,
        limit_bytes=limit,
        account=found,
        assumptions=assumption_notes((*lowered.assumptions, *overheads.assumptions)),
        unknowns=unknown_notes((*lowered.unknowns, *overheads.unknowns)),
        version=VERSION,
    )


def _expected(
    lowered: Lowered, device: Device, spec: JobSpec, overheads: Overheads
) -> tuple[Account, int | None]:
    """Return the account of the run `pipeline.run_on` takes, and the limit it came up against.

    A run that dies of the limit is described as it would be without one.
    """
    capacity = capacity_bytes(device, overheads)
    allowed = allowed_bytes(lowered, device, spec, overheads)
    settings = _settings(lowered)

    def free() -> WatchedAllocator:
        return watched_allocator(settings)

    def capped() -> WatchedAllocator:
        return watched_allocator(settings, capacity=capacity, allowed=allowed)

    found = account_of(lowered.program, free)
    limits = [limit for limit in (capacity, allowed) if limit is not None]
    if not limits or found.reserved_bytes <= min(limits):
        return found, None
    under = account_of(lowered.program, capped)
    return (under, min(limits)) if under.completed else (found, None)


def _settings(lowered: Lowered) -> CachingSettings:
    """Return the settings of PyTorch's allocator, the only one whose dealings are written down."""
    if isinstance(lowered.policy, PyTorchPolicy):
        return lowered.policy.settings
    raise UnsupportedJobError(
        "framework: only PyTorch's allocator keeps an account",
        code=UnknownCode.ALLOCATOR,
        path="framework",
    )
