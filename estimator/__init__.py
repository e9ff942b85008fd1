"""Peak GPU memory of a training job, without a GPU, weights or a run of the user's code.

estimate(spec, devices) -> tuple[Estimate, ...]
"""

from estimator.device import Device
from estimator.errors import EstimatorError
from estimator.pipeline import estimate
from estimator.result import Estimate
from estimator.spec import JobSpec

__all__ = ["Device", "Estimate", "EstimatorError", "JobSpec", "estimate"]
