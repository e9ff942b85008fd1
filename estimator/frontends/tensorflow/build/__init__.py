"""From the model of a spec to a Keras model without weights, its inputs, labels and loss.

JobSpec -> Built
"""

from __future__ import annotations

from estimator.frontends.tensorflow.build.job import Built
from estimator.frontends.tensorflow.build.sources import build_job

__all__ = ["Built", "build_job"]
