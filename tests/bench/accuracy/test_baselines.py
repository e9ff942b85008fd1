"""Other tools are scored on the very rows we are scored on."""

from __future__ import annotations

import pytest

from tests.bench.accuracy.baselines import (
    Held,
    compared,
    held_to_estimates,
    shape_sum,
    sums,
    tensor_sum,
)
from tests.bench.accuracy.builders import answer_of, case_of, outcome_of, scored_of
from tests.bench.accuracy.cases import End


def test_a_tool_and_we_are_scored_on_the_rows_both_have() -> None:
    """A row of theirs that we have no answer for is counted, and in neither figure."""
    rows = [
        scored_of(case_of("g/a", baselines={"tool": 150}), answer_of()),
        scored_of(case_of("g/b", baselines={"tool": 10})),
        scored_of(case_of("g/c"), answer_of(peak=(1, 1, 1))),
    ]

    (found,) = compared(rows)

    assert (found.tool, found.num_carried, found.theirs.num_answered) == ("tool", 2, 1)
    assert found.theirs.median_error == pytest.approx(0.5)
    assert found.ours.median_error == pytest.approx(0.0)


def test_the_tensor_sum_leaves_library_scratch_out() -> None:
    """What is alive at the peak without what the libraries ask for themselves."""
    assert tensor_sum(case_of(), answer_of(peak=(80, 90, 100), workspace=30)) == 80 - 30


def test_the_shape_sum_counts_each_gradient_once() -> None:
    """Parameters, as many gradients, states, activations, whatever is alive at the peak."""
    answer = answer_of(parameters=10, gradients=3, optimizer=20, activations=40, inputs=5)

    assert shape_sum(case_of(), answer) == 10 + 10 + 20 + 40
    assert shape_sum(case_of(spec={"phase": "infer"}), answer) == 10 + 40
    assert shape_sum(case_of(spec={"adapter": {"type": "lora"}}), answer) == 10 + 3 + 20 + 40


def test_plain_sums_stand_beside_each_line() -> None:
    """Two sums a line of cases with an answer."""
    row = scored_of(case_of("g/a"), answer_of(parameters=25))

    found = sums([row], {"g/a": answer_of(parameters=25)})

    assert [one.tool for one in found] == ["sum of live tensors", "shape inference"]
    assert [one.theirs.middle_error for one in found] == [
        pytest.approx(80 / 100 - 1),
        pytest.approx((25 + 25) / 100 - 1),
    ]


def test_capped_runs_are_counted_by_the_tool_that_set_the_cap() -> None:
    """The id tells the tool; a run without a cap belongs to none."""
    outcomes = [
        outcome_of("xmem/a-cap17-llmem", end=End.OOM, cap_bytes=1),
        outcome_of("xmem/b-cap20-llmem", end=End.RAN, cap_bytes=1),
        outcome_of("xmem/c-cap47-xmem", end=End.RAN, cap_bytes=1),
        outcome_of("xmem/d", end=End.OOM),
    ]

    assert held_to_estimates(outcomes) == [
        Held(tool="llmem", num_runs=2, num_died=1),
        Held(tool="xmem", num_runs=1, num_died=0),
    ]
