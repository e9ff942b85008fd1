"""What the tests run in a fork of a process that has the TensorFlow frontend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from estimator.errors import EstimatorError, SpecError, UnsupportedJobError
from estimator.frontends import load
from estimator.spec import parse_spec
from estimator.trace import Trace
from estimator.traits import Traits
from tests.estimator.frontends.children import Refusal

AMPERE = Traits(flash_attention=True, efficient_attention=True, native_bf16=True, xla_target="8.0")
TURING = Traits(
    flash_attention=False, efficient_attention=True, native_bf16=False, xla_target="7.5"
)
PASCAL = Traits(
    flash_attention=False, efficient_attention=True, native_bf16=False, xla_target="6.1"
)


PATIENT_SECONDS = 200.0
"""How long XLA may take here: a busy machine is no reason for another answer."""


def trace(
    document: dict[str, Any], traits: Traits = TURING, seconds: float = PATIENT_SECONDS
) -> Trace:
    """Return the trace of *document*; XLA may take as long as *seconds*."""
    load("tensorflow")
    from estimator.frontends.tensorflow import jit

    jit.SECONDS = seconds
    return load("tensorflow").trace_job(parse_spec(document), traits=traits)


def refusal(document: dict[str, Any]) -> Refusal | None:
    """Return the error *document* is refused with, or None."""
    try:
        trace(document)
    except SpecError as error:
        problems = tuple((problem.path, problem.message) for problem in error.problems)
        return Refusal(kind=error.kind, message=error.message, problems=problems)
    except UnsupportedJobError as error:
        return Refusal(
            kind=error.kind,
            message=error.message,
            code=error.code,
            path=error.path,
            hint=error.hint or "",
        )
    except EstimatorError as error:
        return Refusal(kind=error.kind, message=error.message)
    return None


def zoo() -> tuple[str, ...]:
    """Return the names of `keras.applications`."""
    from estimator.frontends.keras.models import application_names

    return application_names()


def resident_bytes() -> int:
    """Return the host memory of this process now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def growth_of(document: dict[str, Any]) -> int:
    """Return how much host memory a trace of *document* takes."""
    before = resident_bytes()
    trace(document)
    return resident_bytes() - before


def confined(document: dict[str, Any], memory_bytes: int) -> Trace:
    """Return the trace of *document* in a process that may have little memory more."""
    from estimator.processes import jail

    load("tensorflow")
    jail.limit_memory(memory_bytes)
    return trace(document, AMPERE)


def built_layers(document: dict[str, Any]) -> tuple[int, int, list[str]]:
    """Return how often layers of *document* are called while it is read, and of how many, named."""
    import keras

    from estimator.frontends.keras.models import build_model

    calls = 0
    own = keras.layers.Dense.compute_output_spec

    def counted(self: Any, *given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        return own(self, *given, **named)

    keras.layers.Dense.compute_output_spec = counted
    model = build_model(parse_spec(document))
    return calls, len(model.layers), [each.name for each in model.weights][:2]


def is_shared(document: dict[str, Any], one: Traits, other: Traits) -> bool:
    """Return whether cards with *one* and *other* get the same trace, made once."""
    return trace(document, one) is trace(document, other)


def late(document: dict[str, Any]) -> Trace:
    """Return the trace of *document* where XLA has no time at all."""
    return trace(document, AMPERE, seconds=0.01)
