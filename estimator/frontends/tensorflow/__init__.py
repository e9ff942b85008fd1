"""The TensorFlow frontend, the only importer of tensorflow, and of keras on its backend.

    JobSpec, Traits -> Trace

Importing it imports the frameworks and runs no operation: a template process forks afterwards,
and after one eager operation a fork would hang.
"""

from __future__ import annotations

from estimator.frontends.tensorflow import libraries
from estimator.spec import JobSpec
from estimator.trace import Trace
from estimator.traits import Traits

libraries.import_all()

from estimator.frontends.tensorflow.tracing import trace  # noqa: E402  (imported after Keras)

FRAMEWORK = "tensorflow"


def trace_job(spec: JobSpec, *, traits: Traits) -> Trace:
    """Return what *spec* does to the memory of any card with *traits*.

    Raises:
        SpecError: if the user has to change the spec.
        UnsupportedJobError: if a part of the job is not modelled.
        TraceError: if tracing itself fails.
    """
    return trace(spec, traits=traits, framework=FRAMEWORK)


__all__ = ["FRAMEWORK", "trace_job"]
