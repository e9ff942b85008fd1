"""FSDP and ZeRO-3: shares of everything, and no more whole units than their rules allow."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

import pytest

from estimator.sharding import shared
from estimator.sharding.holding import GATHER_STREAM, REDUCE_STREAM
from estimator.sharding.units import units_of
from estimator.spec.vocabulary import Wrap
from estimator.trace import GATHERED_FLOAT8, EventKind, Phase, Role, Trace, TraceBuilder
from tests.estimator.sharding.traces import (
    ELEMENTS,
    LAYER,
    LAYERS,
    ROOT,
    faults,
    phase,
    spec_of,
    whole_trace,
)

N = 8
WAYS: dict[str, dict[str, Any]] = {
    "fsdp2": {"strategy": "fsdp", "implementation": "fsdp2"},
    "fsdp1": {"strategy": "fsdp", "implementation": "fsdp1"},
    "zero3": {"strategy": "zero3", "zero": {"reduceBucketElements": 1000}},
}


def rank(way: str = "fsdp2", degree: int = N, **changes: Any) -> Trace:
    """Return one rank's trace of the small job."""
    return shared(whole_trace(), spec_of(**WAYS[way], dataParallel=degree, **changes))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"reshardAfterForward": False},
        {"offload": "parameters"},
        {"training": {"gradientAccumulationSteps": 4}},
        {"wrap": "size"},
        {"shardGroup": 2},
    ],
)
def test_every_rewritten_trace_can_be_replayed(way: str, changes: dict[str, Any]) -> None:
    """No tensor is made twice or freed while it is not there."""
    assert faults(rank(way, **changes)) == []


@pytest.mark.parametrize("way", ["fsdp1", "fsdp2"])
def test_a_group_of_one_shares_nothing(way: str) -> None:
    """One rank does what the job does without FSDP."""
    assert rank(way, degree=1) == whole_trace()


@pytest.mark.parametrize("way", ["fsdp1", "fsdp2"])
def test_fsdp_holds_a_share_of_weights_gradients_and_states(way: str) -> None:
    """Between steps a rank of N has 1/N of 2 + 4 bytes a parameter, of gradients 2 before."""
    trace = rank(way)

    loaded, after = phase(trace, 0, Phase.LOAD).end, phase(trace, 2, Phase.OPTIMIZER).end

    assert loaded[Role.PARAMETER] == 2 * ELEMENTS // N
    assert phase(trace, 2, Phase.BACKWARD).end[Role.GRADIENT] == 2 * ELEMENTS // N
    assert after[Role.PARAMETER] == 2 * ELEMENTS // N
    assert after[Role.OPTIMIZER] == 4 * ELEMENTS // N
    assert after[Role.GRADIENT] == after[Role.COMMUNICATION] == 0


def test_zero3_holds_sixteen_bytes_a_parameter_over_the_group() -> None:
    """Weights 2, gradients 2, masters 4, Adam's states 8 (Rajbhandari et al. 2020, section 3)."""
    end = phase(rank("zero3"), 2, Phase.OPTIMIZER).end

    assert end[Role.PARAMETER] == 2 * ELEMENTS // N
    assert end[Role.GRADIENT] == 2 * ELEMENTS // N
    assert end[Role.OPTIMIZER] == 12 * ELEMENTS // N


def test_forward_has_the_root_and_three_units_at_most() -> None:
    """A unit's weights, its buffer and the one before: what a wider bound would hide."""
    most = phase(rank(), 1, Phase.FORWARD).most

    whole = most[Role.PARAMETER] - 2 * ELEMENTS // N + most[Role.COMMUNICATION]
    assert whole == max(2 * ROOT + LAYER, ROOT + 2 * LAYER)


def test_the_last_unit_is_gathered_before_backward_begins() -> None:
    """FSDP2 prefetches it in the root's backward: it is there while the loss is differentiated."""
    trace = rank()

    first = next(
        event
        for event, place in enumerate(trace.places)
        if trace.place_table[place].phase is Phase.BACKWARD
    )

    assert trace.roles[trace.ids[first]] == Role.COMMUNICATION
    assert trace.sizes[trace.ids[first]] == LAYER


def test_backward_ends_with_shares_only() -> None:
    """The root is given back and reduced within backward."""
    end = phase(rank(), 1, Phase.BACKWARD).end

    assert end[Role.COMMUNICATION] == 0
    assert end[Role.PARAMETER] == 2 * ELEMENTS // N


def test_without_resharding_all_weights_stay_until_backward() -> None:
    """`reshard_after_forward=False` keeps every unit whole."""
    end = phase(rank(reshardAfterForward=False), 1, Phase.FORWARD).end

    assert end[Role.PARAMETER] == 2 * ELEMENTS + 2 * ELEMENTS // N


def test_wider_shards_are_copied_before_they_are_gathered() -> None:
    """fp32 shards, 16-bit weights, fp32 reduction: mixed precision of FSDP's own."""
    mixed = {"param": "bf16", "reduce": "fp32"}
    trace = rank(mixedPrecision=mixed, training={"precision": "fp32"})

    end = phase(trace, 2, Phase.OPTIMIZER).end

    assert faults(trace) == []
    assert end[Role.PARAMETER] == 4 * ELEMENTS // N
    assert end[Role.OPTIMIZER] == 8 * ELEMENTS // N
    assert phase(trace, 1, Phase.BACKWARD).end[Role.GRADIENT] == 4 * ELEMENTS // N


def test_groups_of_a_hybrid_share_among_themselves() -> None:
    """With `shardGroup` 2 of 8 ranks a share is a half."""
    assert phase(rank(shardGroup=2), 0, Phase.LOAD).end[Role.PARAMETER] == ELEMENTS


def test_ranks_of_one_sequence_share_the_state_too() -> None:
    """torchtitan shards over data and context parallel ranks together."""
    trace = shared(whole_trace(), spec_of(**WAYS["fsdp2"], dataParallel=2, contextParallel=4))

    assert phase(trace, 0, Phase.LOAD).end[Role.PARAMETER] == 2 * ELEMENTS // 8


@pytest.mark.parametrize("way", WAYS)
def test_offloaded_weights_are_on_the_card_only_while_whole(way: str) -> None:
    """Shares, gradients and states are on the host, and the optimizer runs there."""
    end = phase(rank(way, offload="parameters"), 2, Phase.OPTIMIZER).end

    assert end[Role.PARAMETER] == end[Role.GRADIENT] == end[Role.OPTIMIZER] == 0


def test_fsdp1_has_one_flat_gradient_with_room_for_frozen_weights() -> None:
    """With `use_orig_params` a unit with any trained weight has a gradient as large as itself."""
    whole = whole_trace(trained_bytes=8_000)
    flat = shared(whole, spec_of(**WAYS["fsdp1"], dataParallel=N))
    each = shared(whole, spec_of(**WAYS["fsdp2"], dataParallel=N))

    assert phase(flat, 1, Phase.BACKWARD).end[Role.GRADIENT] == LAYERS * LAYER // N
    assert phase(each, 1, Phase.BACKWARD).end[Role.GRADIENT] == LAYERS * 8_000 // N
    assert phase(flat, 1, Phase.OPTIMIZER).end[Role.GRADIENT] == 0


def test_fsdp1_keeps_whole_gradients_while_it_accumulates() -> None:
    """`no_sync`: flat gradients of all micro-batches but the last are not reduced."""
    trace = rank("fsdp1", training={"gradientAccumulationSteps": 4})

    assert phase(trace, 1, Phase.BACKWARD).end[Role.GRADIENT] == 2 * ELEMENTS


def test_pytorch_before_fully_shard_means_the_first_fsdp() -> None:
    """Without an implementation the version says which it is."""
    spec = spec_of(strategy="fsdp", dataParallel=N)
    whole = whole_trace(trained_bytes=8_000)

    old = shared(whole, spec.model_copy(update={"framework_version": "2.1.0+cu121"}))
    new = shared(whole, spec)

    assert phase(old, 1, Phase.BACKWARD).end[Role.GRADIENT] == LAYERS * LAYER // N
    assert phase(new, 1, Phase.BACKWARD).end[Role.GRADIENT] == LAYERS * 8_000 // N


def test_zero3_never_gives_back_small_parameters() -> None:
    """Tensors of at most 1e5 elements stay whole on every rank."""
    small = shared(whole_trace(trained_bytes=8_000), spec_of(**WAYS["zero3"], dataParallel=N))
    weights = LAYERS * LAYER + ROOT

    kept = phase(small, 2, Phase.OPTIMIZER).end[Role.PARAMETER]

    assert kept == (weights - LAYERS * 8_000) // N + LAYERS * 8_000


def test_weights_gathered_in_float8_are_half() -> None:
    """Layers the trace names take one byte a weight while they are whole; shares stay as kept."""
    plain = rank("fsdp2")
    half = shared(
        replace(whole_trace(), facts={GATHERED_FLOAT8: "linear"}),
        spec_of(**WAYS["fsdp2"], dataParallel=N),
    )

    assert faults(half) == []
    assert phase(half, 0, Phase.LOAD).end == phase(plain, 0, Phase.LOAD).end
    before, after = (sum(phase(each, 2, Phase.FORWARD).most) for each in (plain, half))
    assert before - after == LAYER // 2


def test_a_model_beside_the_trained_one_has_units_of_its_own() -> None:
    """Its layers are whole one at a time, not with the root from forward to backward."""
    builder = whole_trace()
    places = [
        replace(each, module=each.module.replace("model.layers", "companion0.model.layers"))
        for each in builder.place_table
    ]
    units = units_of(replace(builder, place_table=tuple(places)), Wrap.LAYER)

    assert units.others == LAYERS
    assert units.weights[1:] == [LAYER] * LAYERS


@pytest.mark.parametrize(("way", "streams"), [("fsdp2", True), ("fsdp1", True), ("zero3", False)])
def test_fsdp_gathers_and_reduces_on_streams_of_its_own(way: str, streams: bool) -> None:
    """The allocator never hands what a share of gradients leaves to an activation."""
    trace = rank(way)

    def of(role: Role) -> set[int]:
        made = [tensor for tensor, each in enumerate(trace.roles) if each == role]
        return {trace.streams[tensor] for tensor in made if trace.sizes[tensor]}

    assert of(Role.ACTIVATION) == {0}
    assert (GATHER_STREAM in of(Role.COMMUNICATION) | of(Role.PARAMETER)) is streams
    assert (REDUCE_STREAM in of(Role.GRADIENT)) is streams


def test_an_optimizer_in_the_backward_pass_leaves_no_share_of_gradients() -> None:
    """A gradient that was used up while it was whole is gone with its reduction."""
    trace = whole_trace()
    freed = [
        event
        for event, kind in enumerate(trace.kinds)
        if kind == EventKind.FREE and trace.roles[trace.ids[event]] == Role.GRADIENT
    ]
    kinds, ids, places = bytearray(), array("q"), array("q")
    for event, kind in enumerate(trace.kinds):
        if event in freed:
            continue
        again = kind == EventKind.ALLOC and trace.roles[trace.ids[event]] == Role.GRADIENT
        for each in (kind, EventKind.FREE) if again else (kind,):
            kinds.append(each)
            ids.append(trace.ids[event])
            places.append(trace.places[event])
    early = replace(trace, kinds=bytes(kinds), ids=ids, places=places)

    made = shared(early, spec_of(**WAYS["fsdp2"], dataParallel=N))

    assert faults(made) == []
    assert phase(made, 1, Phase.BACKWARD).end[Role.GRADIENT] == 0


def test_embedding_and_head_may_be_units_of_their_own() -> None:
    """What comes before the blocks is given back after forward, what comes after them stays."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    for name in ("model.embed", "model.layers.0.linear", "model.layers.1.linear", "lm_head"):
        builder.at(step=0, phase=Phase.LOAD, operator="", module=name)
        builder.alloc(LAYER, Role.PARAMETER)
    builder.at(step=1, phase=Phase.FORWARD, operator="add", module="")

    units = units_of(builder.build(), Wrap.LAYER_AND_ENDS)

    assert units.weights == [0, LAYER, LAYER, LAYER, LAYER]
    assert units.kept == units.count - 1
    assert units_of(builder.build(), Wrap.LAYER).weights == [2 * LAYER, LAYER, LAYER]


def test_a_head_of_its_own_stays_whole_between_forward_and_backward() -> None:
    """FSDP would gather it again at once."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    names = ("model.embed", "model.layers.0.linear", "lm_head")
    for step, phase_name in ((0, Phase.LOAD), (1, Phase.FORWARD), (1, Phase.BACKWARD)):
        for name in names:
            builder.at(step=step, phase=phase_name, operator="mm", module=name)
            builder.alloc(LAYER, Role.ACTIVATION if step else Role.PARAMETER)
    made = shared(builder.build(), spec_of(**WAYS["fsdp2"], dataParallel=N, wrap="layerAndEnds"))

    end = phase(made, 1, Phase.FORWARD).end

    assert end[Role.PARAMETER] == 3 * LAYER // N + LAYER
