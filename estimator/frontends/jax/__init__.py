"""The JAX frontend: the only importer of jax beside the compiler, and of Keras on JAX.

    JobSpec, Traits -> Trace

Importing it imports the frameworks and loads XLA's compiler, and does nothing else: a template
process forks afterwards.
"""

from __future__ import annotations

from estimator.frontends.jax import libraries
from estimator.spec import JobSpec
from estimator.trace import Trace
from estimator.traits import Traits

libraries.import_all()

from estimator.frontends.jax.tracing import trace  # noqa: E402  (imported after the libraries)

FRAMEWORK = "jax"


def trace_job(spec: JobSpec, *, traits: Traits) -> Trace:
    """Return what *spec* does to the memory of any card with *traits*.

    Raises:
        SpecError: if the user has to change the spec.
        UnsupportedJobError: if a part of the job is not modelled.
        EstimateTimeoutError: if XLA does not compile the step in time.
        TraceError: if tracing itself fails.
    """
    return trace(spec, traits=traits, framework=FRAMEWORK)


__all__ = ["FRAMEWORK", "trace_job"]
