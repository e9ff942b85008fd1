"""TensorFlow jobs: what a step of theirs keeps on a card."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from estimator.allocators.bfc import BfcAllocator, BfcSettings
from estimator.allocators.exact import ExactAllocator
from estimator.allocators.protocol import Allocator
from estimator.catalog import resolve_device
from estimator.kernels import End, lower
from estimator.replay import Replay, replay
from estimator.trace import AllocatorKind, Method, Phase, Role, Trace
from estimator.units import GIB, MIB
from tests.estimator.frontends.jax_server import InChild
from tests.estimator.frontends.reading import by_role, fault, operators, peak, sizes_in
from tests.estimator.frontends.tensorflow import children
from tests.estimator.frontends.tensorflow.jobs import (
    convolutions,
    job,
    layer,
    perceptron,
    sequential,
)

pytestmark = pytest.mark.tensorflow

WIDTHS = (512, 1024, 1024, 10)
WEIGHTS = 4 * sum(left * right + right for left, right in pairwise(WIDTHS))
SGD = {"optimizer": {"name": "sgd", "momentum": 0.9}}


def run(trace: Trace, allocator: Allocator) -> Replay:
    """Replay *trace* on a T4, every uncertain workspace at its low end."""
    return replay(lower(trace, resolve_device("t4"), end=End.LOW), allocator)


def kept(trace: Trace, role: Role) -> int:
    """Return the bytes of *role* that are alive at the most allocated moment."""
    return run(trace, ExactAllocator()).live[role]


def test_resnet_50_is_live_and_reserved_as_measured_before(in_tensorflow_child: InChild) -> None:
    """The pool is a step of the staircase, 2 + 4 + … + 2,048 MiB; the need is far below."""
    trace = in_tensorflow_child(children.trace, job("ResNet50", 32, training=SGD))

    growing = run(trace, BfcAllocator(BfcSettings(allow_growth=True)))
    assert run(trace, ExactAllocator()).allocated // MIB == pytest.approx(2884, abs=30)
    assert growing.allocated // MIB == pytest.approx(2973, abs=60)
    assert growing.reserved == 4094 * MIB
    assert (trace.allocator, trace.method) == (AllocatorKind.BFC, Method.TRACE)
    assert trace.parameters == 25_636_712
    assert fault(trace) is None


@pytest.mark.parametrize(("name", "slots"), [("sgd", 0), ("adam", 2), ("rmsprop", 1), ("lion", 1)])
def test_slots_are_those_of_the_optimizer(
    in_tensorflow_child: InChild, name: str, slots: int
) -> None:
    """As many copies of the weights as it keeps, beside a few counters."""
    document = job(perceptron(*WIDTHS), training={"optimizer": {"name": name}})

    trace = in_tensorflow_child(children.trace, document)

    loaded = sum(
        nbytes
        for nbytes, role in zip(trace.sizes, trace.roles, strict=True)
        if role == Role.OPTIMIZER and nbytes in {4 * 512 * 1024, 4 * 1024 * 1024, 4 * 1024 * 10}
    )
    assert kept(trace, Role.OPTIMIZER) >= slots * WEIGHTS
    assert (loaded == 0) is (slots == 0)


def test_activations_follow_the_batch_and_weights_do_not(in_tensorflow_child: InChild) -> None:
    """Twice the batch, twice what a batch makes."""
    small, large = (
        in_tensorflow_child(children.trace, job(perceptron(*WIDTHS), batch, training=SGD))
        for batch in (4096, 8192)
    )

    assert kept(large, Role.ACTIVATION) == pytest.approx(2 * kept(small, Role.ACTIVATION), rel=0.01)
    assert small.parameters == large.parameters


def test_half_precision_takes_less_and_keeps_weights(
    in_tensorflow_child: InChild,
) -> None:
    """Weights stay in fp32 under Keras' mixed policy; its loss scale is a counter."""
    full, mixed = (
        in_tensorflow_child(
            children.trace, job(perceptron(*WIDTHS), 8192, training={**SGD, **precision})
        )
        for precision in ({}, {"precision": "amp-fp16"})
    )

    assert peak(mixed) < 0.85 * peak(full)
    assert mixed.parameters == full.parameters


def test_gradients_that_are_accumulated_stay_between_steps(in_tensorflow_child: InChild) -> None:
    """One more tensor a weight."""
    once, often = (
        in_tensorflow_child(
            children.trace,
            job(perceptron(*WIDTHS), training={**SGD, "gradientAccumulationSteps": steps}),
        )
        for steps in (1, 4)
    )

    assert by_role(often)[Role.OPTIMIZER] >= by_role(once)[Role.OPTIMIZER] + WEIGHTS


def test_inference_makes_no_gradients_and_no_slots(in_tensorflow_child: InChild) -> None:
    """Weights and what a forward pass holds."""
    trace = in_tensorflow_child(children.trace, job(perceptron(*WIDTHS), phase="infer"))

    assert by_role(trace)[Role.GRADIENT] == 0
    assert by_role(trace)[Role.OPTIMIZER] == 0
    assert peak(trace) < 5 * WEIGHTS


def test_an_evaluation_runs_with_its_own_batch(in_tensorflow_child: InChild) -> None:
    """After the training steps, without gradients."""
    document = job(perceptron(*WIDTHS), 32, training={**SGD, "evaluation": {"batchSize": 4096}})

    trace = in_tensorflow_child(children.trace, document)

    assert max(sizes_in(trace, Phase.EVALUATION)) == 4096 * 1024 * 4


def test_mirrored_replicas_join_all_gradients(in_tensorflow_child: InChild) -> None:
    """One flat tensor as large as all weights, which a single card does not make."""
    alone, mirrored = (
        in_tensorflow_child(
            children.trace,
            job(
                perceptron(*WIDTHS),
                training=SGD,
                parallelism={"strategy": "mirrored", "dataParallel": count},
            ),
        )
        for count in (1, 2)
    )

    assert WEIGHTS in list(mirrored.sizes)
    assert WEIGHTS not in list(alone.sizes)


def test_convolutions_are_asked_as_the_card_runs_them(in_tensorflow_child: InChild) -> None:
    """Channels-last with tensor cores, where a filter of one pixel is a matrix product."""
    old, new = (
        in_tensorflow_child(children.trace, job(convolutions(), 8, training=SGD), traits)
        for traits in (children.TURING, children.AMPERE)
    )

    assert operators(old) == {"aten.convolution", "aten.convolution_backward"}
    assert {each.operands[0].channels_last for each in old.kernels} == {False}
    assert {each.operands[0].channels_last for each in new.kernels} == {True}
    assert len(new.kernels) < len(old.kernels)


def test_an_encoder_of_the_hub_is_rebuilt(in_tensorflow_child: InChild) -> None:
    """As many weights as transformers counts for BERT-base with its pooler."""
    document: dict[str, Any] = {
        **job("x", 2, phase="infer", input={"sequenceLength": 16}),
        "model": {
            "source": "huggingface",
            "name": "bert",
            "task": "feature-extraction",
            "config": {"model_type": "bert"},
        },
    }

    trace = in_tensorflow_child(children.trace, document)

    assert trace.parameters == 109_482_240


def test_a_step_that_keras_compiles_is_xlas_plan(in_tensorflow_child: InChild) -> None:
    """On by itself for `fit`; on cards XLA has no plans for it is traced, with a wide interval."""
    document = job(perceptron(*WIDTHS), 4096, training=SGD)
    del document["training"]["compile"]

    compiled = in_tensorflow_child(children.trace, document, children.AMPERE)
    traced = in_tensorflow_child(children.trace, document, children.PASCAL)

    assert (compiled.method, traced.method) == (Method.COMPILE, Method.FORMULA)
    assert by_role(compiled)[Role.OPTIMIZER] >= WEIGHTS
    assert peak(compiled) < peak(traced)


def test_a_trace_takes_little_host_memory(in_tensorflow_child: InChild) -> None:
    """528 MiB of weights and their slots are never there."""
    grown = in_tensorflow_child(children.growth_of, job("VGG16", 32, training=SGD))

    assert grown < 400 * MIB


def test_cards_of_every_size_share_a_trace(in_tensorflow_child: InChild) -> None:
    """A compiled step is another one only for a card it nearly fills."""
    small, large = (replace(children.AMPERE, xla_memory_bytes=n * GIB) for n in (16, 80))
    tiny = replace(children.AMPERE, xla_memory_bytes=8 * MIB)
    traced = job(perceptron(*WIDTHS), training=SGD)
    compiled = job(perceptron(*WIDTHS), training={**SGD, "compile": True})

    assert in_tensorflow_child(children.is_shared, traced, tiny, large)
    assert in_tensorflow_child(children.is_shared, compiled, small, large)
    assert not in_tensorflow_child(children.is_shared, compiled, large, tiny)


def test_a_compile_that_is_late_is_answered_by_what_xla_would_fuse(
    in_tensorflow_child: InChild,
) -> None:
    """About the same, with the interval of a formula, and named."""
    document = job(perceptron(*WIDTHS), 4096, training={**SGD, "compile": True})

    late = in_tensorflow_child(children.late, document)
    compiled = in_tensorflow_child(children.trace, document, children.AMPERE)

    assert late.method is Method.FORMULA
    assert any("in time" in each.reason for each in late.unknowns)
    assert peak(late) == pytest.approx(peak(compiled), rel=0.2)


def test_a_step_too_large_to_be_lowered_is_traced_as_without_xla(
    in_tensorflow_child: InChild,
) -> None:
    """TensorFlow wants its variables mapped for it: 1 GiB of them where 768 MiB may be."""
    document = job(perceptron(1 << 14, 1 << 14), training={**SGD, "compile": True})

    trace = in_tensorflow_child(children.confined, document, 768 * MIB)

    assert trace.method is Method.FORMULA
    assert any("may map" in each.reason for each in trace.unknowns)
    assert by_role(trace)[Role.PARAMETER] >= GIB


def test_a_long_sequence_of_layers_is_put_together_once(in_tensorflow_child: InChild) -> None:
    """Keras would put it together anew for each layer, all those before it included."""
    document = job(perceptron(*[8] * 41))

    calls, layers, _ = in_tensorflow_child(children.built_layers, document)

    assert layers == 40
    assert calls <= 2 * layers


def test_how_a_saved_model_was_trained_is_not_read_and_that_is_said(
    in_tensorflow_child: InChild,
) -> None:
    """The spec says how the job trains it."""
    model = {**perceptron(8, 4), "compile_config": {"optimizer": "adam"}}

    trace = in_tensorflow_child(children.trace, job(model, training=SGD))

    assert any(each.path == "model.config.compile_config" for each in trace.assumptions)


@pytest.mark.parametrize(
    ("told", "nbytes"), [({}, 128 * MIB), ({"HOROVOD_FUSION_THRESHOLD": "0"}, 0)]
)
def test_horovod_keeps_a_buffer_to_pack_gradients_in(
    in_tensorflow_child: InChild, told: dict[str, str], nbytes: int
) -> None:
    """Each process holds the whole model and one buffer, of a size the job may set."""
    alone = job(perceptron(*WIDTHS), training=SGD)
    document = {
        **alone,
        "parallelism": {"strategy": "ddp", "implementation": "horovod", "dataParallel": 4},
        "runtime": {**alone.get("runtime", {}), "env": told},
    }

    trace = in_tensorflow_child(children.trace, document)

    assert by_role(trace)[Role.COMMUNICATION] == nbytes
    assert fault(trace) is None


def test_layers_that_xla_does_not_take_leave_the_step_uncompiled(
    in_tensorflow_child: InChild,
) -> None:
    """Keras says so of some of its layers; a job that asks for it all the same is not compiled."""
    model = sequential([8, 8, 3], layer("RandomZoom", height_factor=0.1), layer("Flatten"))

    trace = in_tensorflow_child(children.trace, job(model, training={"compile": True}))

    assert trace.method == "trace"


@pytest.mark.parametrize("compiled", [False, True])
def test_recurrent_layers_that_cudnn_would_run_are_no_lower_bound(
    in_tensorflow_child: InChild, compiled: bool
) -> None:
    """The loop that is traced in their place needs more: a named unknown, and no denial by it."""
    model = sequential([20, 8], layer("LSTM", units=64, name="lstm"))

    trace = in_tensorflow_child(children.trace, job(model, training={"compile": compiled}))

    assert (trace.method, "atMost" in trace.facts) == ("formula", True)
    assert any("lstm" in unknown.reason for unknown in trace.unknowns)
