"""ZeRO-1, ZeRO-2 and Megatron: whole weights, states in parts."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.sharding import shared
from estimator.trace import Phase, Role
from tests.estimator.sharding.traces import ELEMENTS, LAYERS, faults, phase, spec_of, whole_trace

N = 8
BUCKET = 1000
SMALL = {"zero": {"reduceBucketElements": BUCKET, "allgatherBucketElements": BUCKET}}


@pytest.mark.parametrize(
    ("parallelism", "gradients", "optimizer"),
    [
        ({"strategy": "zero1", "dataParallel": N, **SMALL}, 2, 12 / N),
        ({"strategy": "zero2", "dataParallel": N, **SMALL}, 2 / N, 12 / N),
        ({"implementation": "megatron"}, 4, 12),
        (
            {"implementation": "megatron", "distributedOptimizer": True, "dataParallel": N},
            4,
            12 / N,
        ),
    ],
)
def test_bytes_a_parameter_are_those_of_the_papers(
    parallelism: dict[str, Any], gradients: float, optimizer: float
) -> None:
    """ZeRO: 2 + 2 + 12/N, 2 + 14/N (Rajbhandari et al. 2020); Megatron: 18, 6 + 12/DP."""
    trace = shared(whole_trace(), spec_of(**parallelism))

    end = phase(trace, 2, Phase.BACKWARD).end

    assert faults(trace) == []
    assert end[Role.PARAMETER] == 2 * ELEMENTS
    assert end[Role.GRADIENT] == gradients * ELEMENTS
    assert end[Role.OPTIMIZER] == optimizer * ELEMENTS


@pytest.mark.parametrize("stage", ["zero1", "zero2"])
def test_a_bucket_stands_for_the_backward_pass(stage: str) -> None:
    """It has the size that is set, however small the model."""
    zero = {"zero": {"reduceBucketElements": 7 * ELEMENTS}}
    trace = shared(whole_trace(), spec_of(strategy=stage, dataParallel=N, **zero))

    assert phase(trace, 1, Phase.BACKWARD).end[Role.COMMUNICATION] == 14 * ELEMENTS
    assert phase(trace, 1, Phase.FORWARD).end[Role.COMMUNICATION] == 0


def test_the_step_has_its_part_of_the_gradients_in_fp32() -> None:
    """DeepSpeed copies them for the masters' optimizer."""
    trace = shared(whole_trace(), spec_of(strategy="zero2", dataParallel=N, **SMALL))

    assert phase(trace, 1, Phase.OPTIMIZER).end[Role.COMMUNICATION] == 4 * ELEMENTS // N


@pytest.mark.parametrize("stage", ["zero1", "zero2"])
def test_offloaded_states_leave_the_card(stage: str) -> None:
    """Masters, states and the fp32 gradients are on the host."""
    trace = shared(
        whole_trace(), spec_of(strategy=stage, dataParallel=N, offload="optimizer", **SMALL)
    )

    assert phase(trace, 2, Phase.BACKWARD).end[Role.OPTIMIZER] == 0
    assert faults(trace) == []


def test_jobs_without_a_group_are_left_alone() -> None:
    """Plain and data-parallel jobs hold everything on each rank."""
    whole = whole_trace()

    assert shared(whole, spec_of()) is whole
    assert shared(whole, spec_of(strategy="ddp", dataParallel=N)) is whole
    assert len(whole.sizes) > LAYERS * 2
