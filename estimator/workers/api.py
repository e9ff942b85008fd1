"""Who estimates: the one thing the webhook and the commands ask.

spec, devices -> Estimates; spec, device -> Fit
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from estimator.deferred import Deferred
from estimator.device import Device

if TYPE_CHECKING:
    from estimator import tracefile
    from estimator.result import Estimate, Fit
    from estimator.spec import JobSpec
else:
    tracefile = Deferred("estimator.tracefile")

Job: TypeAlias = "JobSpec | tracefile.Recording"
"""What is estimated: a spec, or a trace somebody made of one."""


def spec_of(job: Job) -> JobSpec:
    """Return the spec of *job*; its digest tells the job, a recorded one too."""
    return job.spec if isinstance(job, tracefile.Recording) else job


class Estimator(Protocol):
    """Answers without blocking the event loop and without a framework in this process."""

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device, in order; of a recording without any framework.

        Raises:
            EstimatorError: of the kind that says why there is none.
        """
        ...

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return what would fit each device, in order (see `Fit`)."""
        ...
