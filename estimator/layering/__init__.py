"""Models of many equal layers, traced with a few and extended.

    Frontend, JobSpec -> Trace

A 405B model is the same layer 126 times. `depth.py` says whose layers are equal by construction,
`runs.py` finds what each of them does in a trace, `extending.py` proves that it repeats and writes
the long trace. What cannot be proven is traced in full.
"""

from __future__ import annotations

from dataclasses import replace

from estimator.errors import EstimatorError
from estimator.frontends import Frontend
from estimator.layering.depth import LAYERS, at_depth, config_of, depth_of, key_of, note_of
from estimator.layering.extending import FEW, LEAST_LAYERS, SOME, extended
from estimator.spec import JobSpec
from estimator.trace import Trace
from estimator.traits import Traits


def layered_trace(frontend: Frontend, spec: JobSpec, *, traits: Traits) -> Trace:
    """Return the trace of *spec*, extended from a few layers where that is proven to be the same.

    Raises:
        EstimatorError: as the frontend does.
    """
    depth = depth_of(spec)
    if depth is not None and depth >= LEAST_LAYERS:
        try:
            few, some = (
                frontend.trace_job(at_depth(spec, layers), traits=traits) for layers in (FEW, SOME)
            )
        except EstimatorError:
            # The job in full may fail the same way: its own words name its own sizes.
            return frontend.trace_job(spec, traits=traits)
        trace = extended(few, some, depth)
        if trace is not None:
            return replace(trace, assumptions=(*note_of(spec), *trace.assumptions))
    return frontend.trace_job(spec, traits=traits)


__all__ = ["LAYERS", "config_of", "key_of", "layered_trace", "note_of"]
