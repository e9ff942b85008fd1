"""Peak GPU memory of a training job, without a GPU, weights or a run of the user's code.

estimate(spec, devices) -> tuple[Estimate, ...]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estimator.device import Device
    from estimator.errors import EstimatorError
    from estimator.pipeline import estimate
    from estimator.result import Estimate
    from estimator.spec import JobSpec

__all__ = ["Device", "Estimate", "EstimatorError", "JobSpec", "estimate"]

_MODULES = {
    "Device": "estimator.device",
    "Estimate": "estimator.result",
    "EstimatorError": "estimator.errors",
    "JobSpec": "estimator.spec",
    "estimate": "estimator.pipeline",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: reading a manifest needs few of them."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
