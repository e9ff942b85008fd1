"""Two traces of one job give it at any batch."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.batching import family_of
from estimator.notes import Unknown, UnknownCode
from estimator.trace import (
    AT_MOST,
    Kernel,
    Method,
    Phase,
    Role,
    TensorFacts,
    Trace,
    TraceBuilder,
)


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


def matrices_at(batch: int) -> Trace:
    """Return two products: one of *batch* x 64 rows, one of 256 rows whatever the batch."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    for rows in (64 * batch, 256, 64 * batch):
        builder.alloc(rows, Role.ACTIVATION)
        facts = TensorFacts(shape=(rows, 10), dtype="float32")
        builder.kernel(Kernel(operator="aten.mm", operands=(facts,)))
    return builder.build()


@pytest.mark.parametrize("batches", [(2, 8), (4, 8), (2, 4)])
@pytest.mark.parametrize("batch", [2, 3, 4, 5])
def test_kernels_that_are_one_at_some_batch_are_a_family(
    batches: tuple[int, int], batch: int
) -> None:
    """At batch 4 both products have 256 rows and are one entry; elsewhere they are two."""
    small, large = batches

    family = family_of(matrices_at(small), matrices_at(large), small_batch=small, large_batch=large)

    assert [len(matrices_at(each).kernels) for each in (2, 4)] == [2, 1]
    assert family is not None
    assert family.at(batch) == matrices_at(batch)


def test_traces_that_say_other_things_are_no_family() -> None:
    """A note, a place or a fact that figures depend on may be another at the batch asked for."""
    small, large = trace_at(8), trace_at(16)
    unknown = Unknown(code=UnknownCode.OPERATOR, path="model", reason="a")
    places = (replace(large.place_table[0], step=2), *large.place_table[1:])

    for other in (
        replace(large, unknowns=(unknown,)),
        replace(large, place_table=places),
        replace(large, facts={AT_MOST: "boxes"}),
    ):
        assert family_of(small, other, small_batch=8, large_batch=16) is None
    said = replace(large, facts={"runSeconds": "0.1"})
    assert family_of(small, said, small_batch=8, large_batch=16) is not None


def test_traces_with_other_events_are_no_family() -> None:
    """A job that takes another path at another batch is not interpolated."""
    assert family_of(trace_at(8), trace_at(16, extra=True), small_batch=8, large_batch=16) is None


def test_sizes_that_are_not_affine_in_whole_bytes_are_no_family() -> None:
    """A difference that the batch does not divide is not interpolated."""
    other = trace_at(16, weights=4003)

    assert family_of(trace_at(8), other, small_batch=8, large_batch=16) is None
    assert isinstance(other.sizes, array)


def test_compiled_steps_are_a_family_about_affine() -> None:
    """A compiler's arena grows with the batch as it likes: the guess rounds up."""
    small, large = (
        replace(trace_at(batch, weights=weights), method=Method.COMPILE)
        for batch, weights in ((8, 4000), (16, 4003))
    )

    family = family_of(small, large, small_batch=8, large_batch=16)

    assert family is not None
    assert family.at(24).sizes[0] == 4000 + 1 * (24 - 8)  # 3 bytes in 8 examples: one each
