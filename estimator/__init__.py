"""Peak GPU memory of a training job, without a GPU, weights or a run of the user's code.

estimate(spec, devices) -> tuple[Estimate, ...]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from estimator.device import Device
from estimator.errors import EstimatorError
from estimator.result import Estimate
from estimator.spec import JobSpec

if TYPE_CHECKING:
    from estimator.pipeline import estimate

__all__ = ["Device", "Estimate", "EstimatorError", "JobSpec", "estimate"]


def __getattr__(name: str) -> Any:
    """Import `estimate` when it is first asked for: reading a manifest needs none of its parts."""
    if name == "estimate":
        from estimator.pipeline import estimate

        return estimate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
