"""Who estimates: the one thing the webhook and the commands ask.

spec, devices -> Estimates; spec, device -> Fit
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from estimator.device import Device
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.tracefile import Recording


class Estimator(Protocol):
    """Answers without blocking the event loop and without a framework in this process."""

    async def estimate(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device, in order.

        Raises:
            EstimatorError: of the kind that says why there is none.
        """
        ...

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return what would fit each device, in order (see `Fit`)."""
        ...


class Replayer(Protocol):
    """An `Estimator` of recorded jobs too."""

    async def estimate(
        self, spec: JobSpec | Recording, devices: Sequence[Device]
    ) -> tuple[Estimate, ...]:
        """Return one estimate a device, in order (see `Estimator`)."""
        ...
