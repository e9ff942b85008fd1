"""The MXNet frontend: MXNet's own planner, rebuilt; it imports no framework.

JobSpec, Traits -> Trace
"""

from __future__ import annotations

from estimator.frontends.mxnet.tracing import trace
from estimator.spec import JobSpec
from estimator.trace import Trace
from estimator.traits import Traits

FRAMEWORK = "mxnet"


def trace_job(spec: JobSpec, *, traits: Traits) -> Trace:  # noqa: ARG001 - a plan knows no card
    """Return what *spec* does to the memory of any card.

    Raises:
        SpecError: if the user has to change the spec.
        UnsupportedJobError: if an operator or a part of the job is not modelled.
        TraceError: if planning itself fails.
    """
    return trace(spec, framework=FRAMEWORK)


__all__ = ["FRAMEWORK", "trace_job"]
