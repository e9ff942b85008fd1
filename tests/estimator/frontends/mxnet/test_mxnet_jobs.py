"""Jobs from spec to trace: what is allocated, when, as what."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import pytest

from estimator.catalog.devices import resolve_device
from estimator.errors import SpecError, UnsupportedJobError
from estimator.frontends.mxnet import trace_job
from estimator.frontends.mxnet.zoo import names
from estimator.kernels import End, lower
from estimator.notes import UnknownCode
from estimator.spec import parse_spec
from estimator.trace import SCRATCH_STREAM, AllocatorKind, EventKind, Method, Phase, Role
from tests.estimator.frontends.mxnet.families import FAMILIES
from tests.estimator.frontends.mxnet.jobs import CARD, by_role, document, live_peak, traced
from tests.estimator.frontends.mxnet.test_mxnet_symbol import dense
from tests.sweeping import spread

MLP = "symbols/mlp"
MLP_LAYERS = ((128, 784), (64, 128), (10, 64))
MLP_PARAMETERS = sum(prod(shape) + shape[0] for shape in MLP_LAYERS)


def mlp(**settings: Any) -> Any:
    """Return the trace of the smallest model, on digits."""
    return traced(name=MLP, batch=4, **settings)


def test_an_executor_that_is_bound_whole_allocates_everything_before_its_first_step() -> None:
    """Arguments, gradients and the plan are there at bind; the optimizer's states come later."""
    trace = mlp()

    allocated = [
        (trace.place_table[place], Role(trace.roles[tensor]))
        for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True)
        if kind == EventKind.ALLOC
    ]
    late = {role for place, role in allocated if place.step > 0}
    assert late == {Role.OPTIMIZER}
    assert EventKind.FREE not in trace.kinds
    assert (trace.method, trace.allocator) == (Method.PLAN, AllocatorKind.POOL)


def test_roles_add_up_to_the_parameters() -> None:
    """Weights, gradients and one momentum each have four bytes an element."""
    trace = mlp()

    roles = by_role(trace)
    assert trace.parameters == MLP_PARAMETERS
    assert roles[Role.PARAMETER] == MLP_PARAMETERS * 4
    assert roles[Role.GRADIENT] == MLP_PARAMETERS * 4
    assert roles[Role.OPTIMIZER] == MLP_PARAMETERS * 4
    assert roles[Role.INPUT] == 4 * 784 * 4 + 4 * 4


def test_auxiliary_states_have_no_gradient() -> None:
    """Running means and variances of batch norms are kept, not trained."""
    roles = by_role(traced(name="resnet18_v1"))

    assert roles[Role.PARAMETER] > roles[Role.GRADIENT]


@pytest.mark.parametrize(
    ("optimizer", "states"),
    [
        ({"name": "sgd"}, 0),
        ({"name": "sgd", "momentum": 0.9}, 1),
        ({"name": "adam"}, 2),
        ({"name": "rmsprop", "centered": True}, 3),
        ({"name": "ftml"}, 3),
    ],
)
def test_each_optimizer_keeps_its_states(optimizer: dict[str, Any], states: int) -> None:
    """One array of the weight's shape for each state."""
    roles = by_role(mlp(optimizer=optimizer))

    assert roles.get(Role.OPTIMIZER, 0) == states * MLP_PARAMETERS * 4


def test_half_precision_halves_weights_and_masters_are_single() -> None:
    """Weights and gradients have two bytes; with masters there is a copy and a state of four."""
    plain = by_role(mlp(training={"precision": "fp16"}))
    master = by_role(mlp(training={"precision": "fp16", "masterWeights": True}))

    assert plain[Role.PARAMETER] == plain[Role.OPTIMIZER] == MLP_PARAMETERS * 2
    assert master[Role.OPTIMIZER] == MLP_PARAMETERS * (4 + 4)


def test_the_ways_to_run_a_graph_differ_as_they_should() -> None:
    """Kept plans hold more between steps than plans made anew; those free what they took."""
    live = {}
    for mode in ("static", "hybridize"):
        trace = traced(name="mobilenet0.25", compile_={"mode": mode}, batch=8)
        live[mode] = live_peak(trace)
        frees = trace.kinds.count(EventKind.FREE)
        assert (frees > 50) == (mode == "hybridize")

    assert live["static"] > live["hybridize"]


def test_a_loop_that_says_nothing_is_taken_operator_by_operator_and_says_so() -> None:
    """`compile` absent is Gluon without `hybridize()`; stated, nothing is assumed."""
    spec = document(name=MLP)
    stated = trace_job(parse_spec(spec | {"training": {"compile": False}}), traits=CARD)
    silent = trace_job(parse_spec(spec | {"training": {}}), traits=CARD)

    assert stated.facts["execution"] == silent.facts["execution"] == "imperative"
    assert [note.path for note in silent.assumptions] == ["training.compile"]
    assert not stated.assumptions


def test_inference_holds_weights_and_what_one_forward_needs() -> None:
    """No gradients, no states, and fewer blocks than training keeps."""
    roles = by_role(mlp(phase="infer", training={"optimizer": {"name": "sgd"}}))

    assert set(roles) == {Role.PARAMETER, Role.INPUT, Role.ACTIVATION}


def test_a_convolution_is_asked_of_the_library_both_ways() -> None:
    """Forward and backward are calls whose scratch the card decides; the first has no input
    gradient."""
    trace = traced(name="symbols/lenet")
    backward = [
        kernel for kernel in trace.kernels if kernel.operator == "aten.convolution_backward"
    ]

    assert sum(kernel.operator == "aten.convolution" for kernel in trace.kernels) == 2
    masks = sorted(dict(kernel.attributes)["output_mask"] for kernel in backward)
    assert masks == [(0, 1, 1), (1, 1, 1)]


def test_several_cards_of_one_process_keep_a_store() -> None:
    """Of four cards each owns about a quarter: weights, sums and three copies of gradients."""
    dp = {"strategy": "dp", "worldSize": 4, "dataParallel": 4}
    alone, shared = by_role(mlp()), by_role(mlp(parallelism=dp))

    owned = shared[Role.OPTIMIZER]
    assert MLP_PARAMETERS * 4 // 4 <= owned < alone[Role.OPTIMIZER]
    assert shared[Role.COMMUNICATION] == 4 * owned
    assert shared[Role.PARAMETER] == alone[Role.PARAMETER] + owned


def test_places_name_the_phase_the_operator_and_the_node() -> None:
    """A breakdown can say which layer's activation it is about."""
    trace = mlp(compile_=False)

    places = {(place.phase, place.operator, place.module) for place in trace.place_table}
    assert (Phase.FORWARD, "FullyConnected", "fc1") in places
    assert (Phase.BACKWARD, "_backward_FullyConnected", "fc1_backward") in places


def test_another_number_of_classes_changes_the_last_layer_only() -> None:
    """The zoo's graphs are made for 1,000 classes, and sized for the job's."""
    few, many = (
        traced(name="squeezenet1.0", classes=count, compile_=True).parameters
        for count in (10, 1000)
    )

    assert many - few == (1000 - 10) * (512 + 1)


@pytest.mark.parametrize("name", spread(names(), of=FAMILIES))
def test_every_name_is_traced_at_its_usual_size(name: str) -> None:
    """No name of the zoo is refused."""
    assert traced(name=name, compile_=True).num_events > 0


def test_a_symbol_of_ones_own_is_planned() -> None:
    """`config` holds a symbol, `options` the shapes of its inputs with 0 for the batch."""
    trace = traced(
        batch=6,
        model={
            "name": "mine",
            "config": dense({"attrs": {"num_hidden": "5"}}),
            "options": {"shapes": {"data": [0, 3]}},
        },
    )

    assert trace.parameters == 5 * 3 + 5
    assert by_role(trace)[Role.INPUT] == 6 * 3 * 4 + 6 * 4


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"model": {"name": "resnet18_v3"}}, "model.name"),
        ({"model": {"options": {"classes": 3}}}, "model.options.classes"),
        ({"model": {"options": {"shapes": {"pixels": [0, 3]}}}}, "model.options.shapes.pixels"),
        ({"model": {"options": {"shapes": {"data": ["a"]}}}}, "model.options.shapes.data"),
        ({"model": {"options": {"types": {"data": "complex"}}}}, "model.options.types.data"),
    ],
)
def test_what_the_user_has_to_change_is_named(settings: dict[str, Any], path: str) -> None:
    """A wrong name or option is an error at its path."""
    with pytest.raises(SpecError) as caught:
        traced(**settings)

    assert [problem.path for problem in caught.value.problems] == [path]


def test_a_wrong_name_gets_near_ones() -> None:
    """A typing mistake is answered with what was probably meant."""
    with pytest.raises(SpecError) as caught:
        traced(name="resnet51_v1")

    assert "resnet50_v1" in (caught.value.hint or "")


def test_an_image_too_small_for_the_model_is_refused_with_the_node() -> None:
    """The refusal says which layer runs out of pixels."""
    with pytest.raises(SpecError, match=r"Pooling.*is too small"):
        traced(name="densenet121", image=(3, 32, 32))


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"training": {"optimizer": {"name": "lion"}}}, UnknownCode.OPTIMIZER),
        ({"training": {"precision": "amp-fp16"}}, UnknownCode.PRECISION),
        ({"training": {"gradientCheckpointing": "full"}}, UnknownCode.FEATURE),
        ({"training": {"compile": {"mode": "max-autotune"}}}, UnknownCode.FEATURE),
        ({"parallelism": {"strategy": "fsdp"}}, UnknownCode.PARALLELISM),
        ({"parallelism": {"tensorParallel": 2}}, UnknownCode.PARALLELISM),
        ({"model": {"source": "timm"}}, UnknownCode.MODEL),
        ({"objective": "dpo"}, UnknownCode.OBJECTIVE),
    ],
)
def test_what_is_not_modelled_is_refused_by_its_code(
    settings: dict[str, Any], code: UnknownCode
) -> None:
    """Nothing that moves memory is ignored."""
    with pytest.raises(UnsupportedJobError) as caught:
        traced(**settings)

    assert caught.value.code is code


def test_older_builds_keep_no_indices_of_poolings() -> None:
    """CUDA wheels before 1.7 have no oneDNN: poolings and concatenations keep less."""
    planned = {
        version: int(
            traced(name="symbols/lenet", batch=64, frameworkVersion=version).facts["plannedBytes"]
        )
        for version in ("1.5.0", "1.9.1")
    }

    assert planned["1.5.0"] < planned["1.9.1"]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("mlp", MLP_PARAMETERS), ("resnet20", None), ("vgg16", None), ("resnet110_v1", None)],
)
def test_a_symbol_is_known_without_its_folder(name: str, parameters: int | None) -> None:
    """Scripts name a network and its depth; a name that gluon's zoo has too is gluon's."""
    trace = traced(name=name)

    assert parameters in (None, trace.parameters)


def test_scratch_of_convolutions_is_one_growing_block() -> None:
    """Lowered for a card, it lies on the stream that MXNet's pool keeps one block for."""
    trace = traced(name="symbols/lenet")
    program = lower(trace, resolve_device("a100-sxm4-40gb"), end=End.HIGH)

    streams = {
        stream
        for stream, role in zip(program.streams, program.roles, strict=True)
        if role == Role.WORKSPACE
    }
    assert streams == {SCRATCH_STREAM}


def test_a_recurrent_layer_keeps_a_reserve_and_is_asked_of_the_library() -> None:
    """An LSTM of two layers keeps 7 values a step, layer and unit, less one output."""
    steps, batch, width, hidden, layers = 5, 6, 3, 4, 2
    lstm = {"state_size": str(hidden), "num_layers": str(layers), "mode": "lstm", "p": "0.1"}
    names_of = ("data", "lstm_parameters", "state", "state_cell")
    nodes: list[dict[str, Any]] = [{"op": "null", "name": name, "inputs": []} for name in names_of]
    inputs = [[index, 0, 0] for index in range(len(names_of))]
    nodes.append({"op": "RNN", "name": "lstm", "attrs": lstm, "inputs": inputs})
    trace = traced(
        batch=batch,
        model={
            "name": "lstm",
            "config": {"nodes": nodes, "heads": [[4, 0, 0]]},
            "options": {"shapes": {"data": [steps, 0, width], "state": [layers, 0, hidden]}},
        },
    )

    first = (width + hidden + 2) * 4 * hidden
    second = (hidden + hidden + 2) * 4 * hidden
    reserve = steps * batch * hidden * (7 * layers - 1) * 4
    assert trace.parameters == first + second + layers * batch * hidden
    assert reserve in trace.sizes
    assert {kernel.operator for kernel in trace.kernels} == {
        "aten._cudnn_rnn",
        "aten._cudnn_rnn_backward",
    }
    assert any(note.code is UnknownCode.KERNEL for note in trace.unknowns)


def test_batches_that_wait_on_the_card_are_counted() -> None:
    """Each is another copy of data and labels."""
    alone = by_role(mlp(compile_=False))[Role.INPUT]
    ahead = by_role(mlp(compile_=False, input={"prefetchBatches": 2}))[Role.INPUT]

    assert ahead - alone == 2 * (4 * 784 + 4) * 4


@pytest.mark.parametrize("compile_", [True, False])
def test_a_job_is_traced_the_same_whichever_way_it_was_run_before(compile_: bool) -> None:
    """All ways to run a job share its forward graph, and none of them changes it."""
    traced(name="symbols/lenet")
    first = traced(name=MLP, compile_=compile_)
    for other in (True, False, {"enabled": True, "mode": "hybridize"}):
        traced(name=MLP, compile_=other)

    again = traced(name=MLP, compile_=compile_)

    clocked = {"runSeconds": ""}
    assert replace(again, facts={**again.facts, **clocked}) == replace(
        first, facts={**first.facts, **clocked}
    )
