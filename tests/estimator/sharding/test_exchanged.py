"""Micro-batches in flight, buffers of exchange, communicators, and what is named as unknown."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.sharding import communicators_of, ranks_of
from estimator.sharding.exchanged import with_buffer, with_ring, with_shorter_norms
from estimator.sharding.flights import MOST_COPIES, held_at_once, in_flight
from estimator.sharding.notes import unknowns_of
from estimator.trace import Phase, Role, Trace, TraceBuilder
from tests.estimator.sharding.traces import (
    ACTIVATION,
    LAYERS,
    faults,
    phase,
    spec_of,
    whole_trace,
)


def attention() -> Trace:
    """Return a forward and a backward pass of one block with a norm and an attention."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    builder.alloc(10, Role.PARAMETER)
    kept = []
    for name in ("layers.0.input_layernorm", "layers.0.self_attn.q_proj", "layers.0"):
        builder.at(step=1, phase=Phase.FORWARD, operator="mm", module=name)
        kept.append(builder.alloc(1000, Role.ACTIVATION))
    builder.at(step=1, phase=Phase.BACKWARD, operator="mm", module="layers.0.self_attn.q_proj")
    for tensor in kept:
        builder.free(tensor)
    return builder.build()


@pytest.mark.parametrize(
    ("changes", "stage", "held"),
    [
        ({}, 0, 4),
        ({}, 3, 1),
        ({"microBatches": 2}, 0, 2),
        ({"schedule": "gpipe"}, 3, 16),
        ({"schedule": "interleaved", "virtualStages": 2}, 0, 4 * (1 + 3 / 8)),
    ],
)
def test_a_stage_holds_the_micro_batches_ahead_of_its_first_backward(
    changes: dict[str, Any], stage: int, held: float
) -> None:
    """1F1B: as many as stages from it on; GPipe: all; interleaved: 1 + (p - 1)/(p v) as many."""
    spec = spec_of(**{"pipelineParallel": 4, "microBatches": 16, **changes})

    assert held_at_once(spec.parallelism, stage) == held


def test_each_micro_batch_in_flight_has_activations_of_its_own() -> None:
    """What forward keeps for backward is there four times; weights are not."""
    one, four = whole_trace(), in_flight(whole_trace(), 4)

    assert faults(four) == []
    assert phase(four, 1, Phase.FORWARD).end[Role.ACTIVATION] == 4 * LAYERS * ACTIVATION
    weights = [phase(each, 1, Phase.FORWARD).end[Role.PARAMETER] for each in (one, four)]
    assert weights[0] == weights[1]
    assert in_flight(one, 1) is one


def test_a_ring_has_its_buffers_while_it_attends() -> None:
    """Two copies of keys and values in forward, four in backward, none elsewhere."""
    trace = with_ring(attention(), 300)

    assert faults(trace) == []
    assert phase(trace, 1, Phase.FORWARD).end[Role.COMMUNICATION] == 0
    made = [
        size
        for size, role in zip(trace.sizes, trace.roles, strict=True)
        if role == Role.COMMUNICATION
    ]
    assert made == [600, 1200]


def test_sequence_parallel_divides_norms_and_the_residual_stream() -> None:
    """Linears keep their whole input, gathered into one buffer."""
    trace = with_shorter_norms(attention(), 4, 1000)

    end = phase(trace, 1, Phase.FORWARD).end

    assert end[Role.ACTIVATION] == 250 + 1000 + 250
    assert end[Role.COMMUNICATION] == 1000


def test_a_pipeline_has_a_buffer_for_its_neighbour() -> None:
    """Made once, and kept."""
    trace = with_buffer(attention(), 77)

    assert phase(trace, 1, Phase.BACKWARD).end[Role.COMMUNICATION] == 77


@pytest.mark.parametrize(
    ("parallelism", "ranks", "communicators"),
    [
        ({}, 1, 1),
        ({"dataParallel": 8}, 8, 1),
        ({"dataParallel": 16, "shardGroup": 8, "strategy": "fsdp"}, 16, 3),
        ({"dataParallel": 2, "tensorParallel": 4, "pipelineParallel": 8}, 64, 4),
        ({"dataParallel": 2, "contextParallel": 4}, 8, 3),
    ],
)
def test_a_rank_has_a_communicator_for_each_way_it_is_parallel(
    parallelism: dict[str, Any], ranks: int, communicators: int
) -> None:
    """And one of all ranks where there is more than one way."""
    found = spec_of(**parallelism).parallelism

    assert (ranks_of(found), communicators_of(found)) == (ranks, communicators)


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"strategy": "fsdp", "dataParallel": 2}, []),
        ({"strategy": "fsdp", "wrap": "size"}, ["parallelism.wrap"]),
        ({"strategy": "zero2"}, ["parallelism.zero"]),
        ({"strategy": "zero3"}, ["parallelism.zero"]),
        (
            {"strategy": "fsdp", "training": {"gradientAccumulationSteps": 2}},
            ["training.gradientAccumulationSteps"],
        ),
        (
            {
                "strategy": "fsdp",
                "implementation": "fsdp1",
                "training": {"gradientAccumulationSteps": 2},
            },
            [],
        ),
    ],
)
def test_what_is_taken_one_way_of_several_is_named(
    changes: dict[str, Any], paths: list[str]
) -> None:
    """Each with its path, so that a reader of the estimate can tell."""
    assert [unknown.path for unknown in unknowns_of(spec_of(**changes))] == paths


def test_a_million_micro_batches_are_held_in_a_bounded_number_of_events() -> None:
    """GPipe holds all of them: the bytes are there, in blocks of many at once."""
    one, many = whole_trace(), in_flight(whole_trace(), 2**20)

    assert faults(many) == []
    assert many.num_events < 2 * (MOST_COPIES + 3) * one.num_events
    assert phase(many, 1, Phase.FORWARD).end[Role.ACTIVATION] == 2**20 * LAYERS * ACTIVATION
