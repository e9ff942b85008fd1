"""From one figure to an interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.calibration import (
    LAST_BATCH,
    MARGINS,
    Bound,
    bounded,
    handed_over,
    handed_to_next,
    last_batch,
)
from estimator.spec import JobSpec
from estimator.trace import Method, Phase, Role, Trace, TraceBuilder
from estimator.units import GIB, MIB
from tests.estimator.stub import spec_of


def test_margins_move_outwards_and_round_outwards() -> None:
    """1,001 less 3 % is 970.97, plus 5 % 1,051.05: both are rounded away from the figure."""
    assert bounded(1001, Method.TRACE, Bound.LEAST) == 970
    assert bounded(1001, Method.TRACE, Bound.ENOUGH) == 1052


def test_every_method_has_every_bound_with_a_reason() -> None:
    """No combination is missing, and each says what it rests on."""
    assert set(MARGINS) == {(method, bound) for method in Method for bound in Bound}
    assert all(margin.reason and margin.thousandths > 0 for margin in MARGINS.values())


@pytest.mark.parametrize("bound", list(Bound))
def test_a_formula_is_less_sure_than_a_trace(bound: Bound) -> None:
    """Its interval is wider on every side."""
    formula, trace = MARGINS[Method.FORMULA, bound], MARGINS[Method.TRACE, bound]

    assert formula.thousandths > trace.thousandths


@given(st.integers(min_value=0, max_value=1 << 40), st.sampled_from(list(Method)))
def test_the_interval_holds_the_figure(nbytes: int, method: Method) -> None:
    """least <= figure <= enough, most."""
    assert bounded(nbytes, method, Bound.LEAST) <= nbytes
    for bound in (Bound.ENOUGH, Bound.MOST_ALLOCATED, Bound.MOST_RESERVED):
        assert bounded(nbytes, method, bound) >= nbytes


@pytest.mark.parametrize("bound", list(Bound))
def test_a_release_that_was_taken_makes_the_interval_no_narrower(bound: Bound) -> None:
    """Least goes lower, the others higher, for every method."""
    for method in Method:
        told = bounded(1 << 30, method, bound)
        taken = bounded(1 << 30, method, bound, unstated=True)
        assert taken <= told if bound is Bound.LEAST else taken >= told


@pytest.mark.parametrize("bound", list(Bound))
def test_without_cudnns_answers_the_interval_is_no_narrower(bound: Bound) -> None:
    """Least goes lower, the others higher, for every method."""
    for method in Method:
        asked = bounded(1 << 30, method, bound)
        unasked = bounded(1 << 30, method, bound, unasked=True)
        assert unasked <= asked if bound is Bound.LEAST else unasked >= asked


def keeping(outputs: int, *, num_steps: int = 2) -> Trace:
    """Return a loop whose batch and outputs live until the next step has made its own."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    builder.alloc(GIB, Role.PARAMETER)
    kept: list[int] = []
    for step in range(1, num_steps + 1):
        builder.at(step=step, phase=Phase.FORWARD, operator="", module="")
        batch = builder.alloc(3 * MIB, Role.INPUT)
        hidden = builder.alloc(2 * outputs, Role.ACTIVATION)
        output = builder.alloc(outputs, Role.ACTIVATION)
        for tensor in (*kept, hidden):
            builder.free(tensor)
        if step == 1:
            builder.alloc(GIB, Role.OPTIMIZER)
        kept = [batch, output]
    return builder.build(parameters=GIB // 4)


def test_a_step_hands_its_largest_output_to_the_next() -> None:
    """21 MiB get a segment of 22; weights, states and what dies in the step are not handed over."""
    assert handed_over(keeping(21 * MIB)) == 22 * MIB


def test_what_shares_small_segments_is_in_nobodys_way() -> None:
    """The outputs of a classifier are under 1 MiB; its batch of 3 MiB takes a segment of 20."""
    assert handed_over(keeping(MIB // 2)) == 20 * MIB


def test_one_step_hands_nothing_over() -> None:
    """A trace without a second step does not say what would be alive in it."""
    assert handed_over(keeping(21 * MIB, num_steps=1)) == 0


def test_a_smaller_batch_adds_what_is_handed_over_and_a_share() -> None:
    """The outputs' segment, and 2 % for other size classes, rounded up."""
    trace = keeping(21 * MIB)

    assert LAST_BATCH.thousandths == 20
    assert last_batch(spec_of(8), trace, 1001) == 22 * MIB + 21
    assert handed_to_next(spec_of(8), trace) == 22 * MIB


@pytest.mark.parametrize("spec", [spec_of(1), spec_of(8, phase="infer")], ids=["one", "infer"])
def test_without_a_smaller_batch_nothing_is_added(spec: JobSpec) -> None:
    """Nothing is smaller than one sample, and the outputs of inference are the caller's."""
    assert last_batch(spec, keeping(21 * MIB), GIB) == 0
    assert handed_to_next(spec, keeping(21 * MIB)) == 0
