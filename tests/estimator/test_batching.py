"""Two traces of one job give it at any batch."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from estimator.batching import family_of
from estimator.trace import Kernel, Phase, Role, TensorFacts, Trace, TraceBuilder


def trace_at(batch: int, *, weights: int = 4000, extra: bool = False) -> Trace:
    """Return the trace of one linear layer at *batch*."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    builder.alloc(weights, Role.PARAMETER)
    builder.at(step=1, phase=Phase.FORWARD, operator="aten.mm", module="layer")
    output = builder.alloc(40 * batch, Role.ACTIVATION)
    builder.kernel(
        Kernel(operator="aten.mm", operands=(TensorFacts(shape=(batch, 10), dtype="float32"),))
    )
    if extra:
        builder.free(builder.alloc(8, Role.TEMPORARY))
    builder.free(output)
    return builder.build()


@given(st.integers(min_value=1, max_value=4096))
def test_a_family_gives_the_trace_of_any_batch(batch: int) -> None:
    """Sizes and kernel shapes at any batch are those a trace of that batch has."""
    family = family_of(trace_at(8), trace_at(16), small_batch=8, large_batch=16)

    assert family is not None
    assert family.at(batch) == trace_at(batch)


def test_traces_with_other_events_are_no_family() -> None:
    """A job that takes another path at another batch is not interpolated."""
    assert family_of(trace_at(8), trace_at(16, extra=True), small_batch=8, large_batch=16) is None


def test_sizes_that_are_not_affine_in_whole_bytes_are_no_family() -> None:
    """A difference that the batch does not divide is not interpolated."""
    other = trace_at(16, weights=4003)

    assert family_of(trace_at(8), other, small_batch=8, large_batch=16) is None
    assert isinstance(other.sizes, array)
