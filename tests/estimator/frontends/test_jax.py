"""The JAX frontend: a Keras step compiled by XLA for a card that is not there."""

from __future__ import annotations

from collections import Counter

import pytest

from estimator.trace import AllocatorKind, Method, Role, Trace
from tests.estimator.frontends import jax_children as children
from tests.estimator.frontends.jax_children import job, perceptron
from tests.estimator.frontends.jax_server import InChild
from tests.estimator.frontends.reading import fault

pytestmark = pytest.mark.jax

MIB = 1 << 20
WEIGHTS = 4 * (1024 * 1024 + 1024) * 4
"""Bytes of the perceptron's: four layers of 1,024 with a bias, in fp32."""


def by_role(trace: Trace) -> Counter[Role]:
    """Return the bytes of all tensors of *trace*."""
    found: Counter[Role] = Counter()
    for size, role in zip(trace.sizes, trace.roles, strict=True):
        found[Role(role)] += size
    return found


def arena(trace: Trace) -> int:
    """Return the largest block for what lives within a step."""
    pairs = zip(trace.sizes, trace.roles, strict=True)
    return max(size for size, role in pairs if role == Role.TEMPORARY)


def test_a_step_is_weights_slots_batches_and_one_arena(in_jax_child: InChild) -> None:
    """Adam keeps two slots a weight; the state is written over itself."""
    document = job(perceptron(), batch=256, training={"optimizer": {"name": "adam"}})

    trace = in_jax_child(children.trace, document)

    sums = by_role(trace)
    assert trace.method is Method.COMPILE
    assert trace.allocator is AllocatorKind.XLA_CLIENT
    assert trace.parameters * 4 == WEIGHTS
    assert sums[Role.PARAMETER] == WEIGHTS
    assert 2 * WEIGHTS <= sums[Role.OPTIMIZER] < 2 * WEIGHTS + 256
    assert sums[Role.INPUT] == 2 * (256 * 1024 * 4 + 256 * 4)  # two batches
    assert sums[Role.ACTIVATION] < 64 << 10  # the loss alone leaves the step
    assert arena(trace) > 256 * 1024 * 4
    assert fault(trace) is None


def test_resnet50_takes_what_xla_says(in_jax_child: InChild) -> None:
    """2,773 MiB of peak and a little more as a sum, at batch 32 for an A100."""
    document = job(
        {"source": "keras", "name": "ResNet50"},
        batch=32,
        training={"optimizer": {"name": "sgd", "momentum": 0.9}},
    )

    trace = in_jax_child(children.trace, document)

    held = by_role(trace)
    total = held[Role.PARAMETER] + held[Role.OPTIMIZER] + held[Role.INPUT] // 2 + arena(trace)
    assert total == pytest.approx(2776 * MIB, rel=0.01)


@pytest.mark.slow
def test_a_card_short_of_memory_gets_a_plan_of_its_own(in_jax_child: InChild) -> None:
    """XLA computes values again rather than to die: a need made with plenty says no too often."""
    document = job({"source": "keras", "name": "ResNet50"}, batch=32)

    plenty = in_jax_child(children.trace, document)
    scarce = in_jax_child(children.trace, document, 3 << 30)

    assert arena(scarce) < 0.9 * arena(plenty)


def test_a_prediction_keeps_no_slots(in_jax_child: InChild) -> None:
    """And little beside its weights."""
    training = in_jax_child(children.trace, job(perceptron(), batch=256))
    inference = in_jax_child(children.trace, job(perceptron(), batch=256, phase="infer"))

    assert by_role(inference)[Role.OPTIMIZER] == 0
    assert arena(inference) < arena(training)


def test_mixed_precision_halves_what_is_kept(in_jax_child: InChild) -> None:
    """Activations are 16-bit, weights stay 32-bit."""
    deep = perceptron(width=512, depth=12)
    full = in_jax_child(children.trace, job(deep, batch=8192))
    mixed = in_jax_child(
        children.trace,
        job(deep, batch=8192, training={"precision": "amp-bf16", "optimizer": {"name": "sgd"}}),
    )

    assert by_role(mixed)[Role.PARAMETER] == by_role(full)[Role.PARAMETER]
    assert arena(mixed) < 0.7 * arena(full)


def test_data_parallel_cards_hold_the_state_and_their_own_batch(in_jax_child: InChild) -> None:
    """Nothing of the state is shared."""
    one = in_jax_child(children.trace, job(perceptron(), batch=256))
    four = in_jax_child(
        children.trace,
        job(perceptron(), batch=256, parallelism={"strategy": "ddp", "dataParallel": 4}),
    )

    assert by_role(four)[Role.PARAMETER] == by_role(one)[Role.PARAMETER]
    assert by_role(four)[Role.INPUT] == by_role(one)[Role.INPUT]


def test_fully_sharded_cards_hold_their_part_of_the_state(in_jax_child: InChild) -> None:
    """A quarter of weights and slots each."""
    document = job(
        perceptron(),
        batch=256,
        training={"optimizer": {"name": "adam"}},
        parallelism={"strategy": "fsdp", "dataParallel": 4},
    )

    sums = by_role(in_jax_child(children.trace, document))

    assert sums[Role.PARAMETER] == WEIGHTS // 4
    assert 2 * WEIGHTS // 4 <= sums[Role.OPTIMIZER] < 2 * WEIGHTS // 4 + 256


def test_tensor_parallel_cards_hold_their_part_of_the_matrices(in_jax_child: InChild) -> None:
    """Biases are whole everywhere."""
    document = job(perceptron(), batch=256, parallelism={"tensorParallel": 2})

    trace = in_jax_child(children.trace, document)

    assert by_role(trace)[Role.PARAMETER] == 4 * (1024 * 512 + 1024) * 4
    assert trace.facts["cards"] == "2"


def test_a_late_compile_is_answered_by_what_xla_would_fuse(in_jax_child: InChild) -> None:
    """With the method of a formula, and named as unknown."""
    compiled, outlined = in_jax_child(children.traced_when_late, job(perceptron(), batch=4096))

    assert outlined.method is Method.FORMULA
    assert any("in time" in note.reason for note in outlined.unknowns)
    assert arena(outlined) == pytest.approx(arena(compiled), rel=0.3)


def test_an_exported_step_is_compiled_as_it_is(in_jax_child: InChild) -> None:
    """Its arguments are those of the file: 1,024 x 1,024 weights and 256 rows."""
    trace = in_jax_child(children.traced_export)

    assert by_role(trace)[Role.PARAMETER] == 1024 * 1024 * 4 + 256 * 1024 * 4
    assert any(note.path == "model.config" for note in trace.unknowns)


def test_an_export_whose_trees_double_costs_no_more_than_another(in_jax_child: InChild) -> None:
    """They say how arguments are called; a worker that walked them would never come back."""
    doubling = in_jax_child(children.traced_doubling_export)
    plain = in_jax_child(children.traced_export)

    assert by_role(doubling) == by_role(plain)
    assert doubling.unknowns == plain.unknowns


def test_no_second_framework_is_imported(in_jax_child: InChild) -> None:
    """Keras would look for TensorFlow while it reads a configuration."""
    assert in_jax_child(children.imported_tensorflow, job(perceptron())) is False


def recurrent(kind: str, **options: object) -> dict[str, object]:
    """Return the model part of one recurrent layer over 8 steps of 4 values."""
    layers = [
        {
            "module": "keras.layers",
            "class_name": "InputLayer",
            "config": {"batch_shape": [None, 8, 4], "dtype": "float32", "name": "input"},
        },
        {
            "module": "keras.layers",
            "class_name": kind,
            "config": {"name": "cells", "units": 16, **options},
        },
    ]
    config = {
        "module": "keras",
        "class_name": "Sequential",
        "config": {"name": "m", "layers": layers, "build_input_shape": [None, 8, 4]},
    }
    return {"source": "keras", "name": "m", "config": config}


@pytest.mark.parametrize(
    ("kind", "options", "named"),
    [
        ("LSTM", {}, "cells"),
        ("LSTM", {"unroll": True}, ""),
        ("LSTM", {"use_bias": False}, ""),
        ("LSTM", {"activation": "relu"}, ""),
        ("LSTM", {"recurrent_dropout": 0.1}, ""),
        ("LSTM", {"use_cudnn": False}, ""),
        ("GRU", {}, ""),
    ],
)
def test_only_the_usual_lstm_runs_through_cudnn(
    in_jax_child: InChild, kind: str, options: dict[str, object], named: str
) -> None:
    """As Keras decides where JAX sees a card; GRU is a loop there too."""
    assert in_jax_child(children.run_by_cudnn, job(recurrent(kind, **options))) == named


def test_a_layer_that_a_card_gives_to_cudnn_is_no_lower_bound(in_jax_child: InChild) -> None:
    """The loop is compiled in its place, and what cuDNN would keep is not known."""
    trace = in_jax_child(children.trace, job(recurrent("LSTM")))

    assert "atMost" in trace.facts
    assert trace.method is Method.FORMULA
    assert any("cells" in note.reason for note in trace.unknowns)


def test_what_autotuning_adds_is_named(in_jax_child: InChild) -> None:
    """It needs the card."""
    trace = in_jax_child(children.trace, job(perceptron()))

    assert any(note.code == "kernel" for note in trace.unknowns)


def test_the_pool_is_told_apart_from_the_need(in_jax_child: InChild) -> None:
    """JAX takes three quarters of the card; the job needs a part of that."""
    answer = in_jax_child(children.estimated, job(perceptron()), "a100-sxm4-40gb")

    assert answer["method"] == "compile"
    usable = answer["device"]["usableBytes"]
    assert answer["allocatorLimitBytes"] == int(0.75 * usable)
    assert answer["preallocatedBytes"] >= int(0.75 * usable)
    assert answer["peak"]["deviceBytes"] < 2 << 30
