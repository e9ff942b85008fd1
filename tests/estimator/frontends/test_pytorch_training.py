"""What optimizers, precision, checkpointing and the loop do to a trace."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.notes import UnknownCode
from estimator.trace import EventKind, Phase, Role
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import (
    allocated_by,
    bert,
    by_role,
    fault,
    job,
    kept_at_backward,
    layers,
    llama,
    most_alive,
    operators,
    peak,
    sizes_in,
    torchvision,
)

pytestmark = pytest.mark.torch

WEIGHTS = 4 * (1000 * 1000 + 1000)
"""Bytes of a linear layer of 1,000 by 1,000 and its bias."""


@pytest.mark.parametrize(
    ("optimizer", "state"),
    [
        ({"name": "sgd"}, 0),
        ({"name": "sgd", "momentum": 0.9}, WEIGHTS),
        ({"name": "adam"}, 2 * WEIGHTS),
        ({"name": "adamw"}, 2 * WEIGHTS),
        ({"name": "adamw", "amsgrad": True}, 3 * WEIGHTS),
        ({"name": "nadam"}, 2 * WEIGHTS),
        ({"name": "radam"}, 2 * WEIGHTS),
        ({"name": "adamax"}, 2 * WEIGHTS),
        ({"name": "rmsprop"}, WEIGHTS),
        ({"name": "rmsprop", "momentum": 0.9, "centered": True}, 3 * WEIGHTS),
        ({"name": "adagrad"}, WEIGHTS),
        ({"name": "adadelta"}, 2 * WEIGHTS),
        ({"name": "lion"}, WEIGHTS),
        ({"name": "adafactor"}, 4 * (1000 + 1000) + 4 * 1000),
        ({"name": "adamw", "bits": 8}, 2 * (1000 * 1000 + 4 * 3907) + 2 * 4 * 1000),
    ],
    ids=str,
)
def test_optimizer_state_has_the_published_size(
    in_child: InChild, optimizer: dict[str, Any], state: int
) -> None:
    """State tensors are made once, in the first step, and have the size of the table."""
    document = job(layers(1000, 1000), training={"optimizer": optimizer})

    trace = in_child(children.trace, document)

    assert fault(trace) is None
    assert by_role(trace)[Role.OPTIMIZER] == state


def test_fused_adam_needs_no_temporaries_and_foreach_one_copy(in_child: InChild) -> None:
    """foreach takes four bytes a parameter during the step, fused none."""
    fused, foreach = (
        in_child(
            children.trace,
            job(layers(1000, 1000), training={"optimizer": {"name": "adamw", **how}}),
        )
        for how in ({"fused": True}, {"foreach": True})
    )

    assert allocated_by(foreach, "aten._foreach_sqrt", Phase.OPTIMIZER) == [4_000_000, 4000] * 2
    assert peak(foreach) > 5 * WEIGHTS > peak(fused)


def test_amp_keeps_fp32_weights_and_a_cast_of_each_until_backward(in_child: InChild) -> None:
    """Under autocast weights stay fp32 and each used weight has a 16-bit copy."""
    document = job(layers(1000, 1000), training={"precision": "amp-bf16"})

    trace = in_child(children.trace, document)

    casts = allocated_by(trace, "aten._to_copy")
    assert by_role(trace)[Role.PARAMETER] == WEIGHTS
    assert 2 * 1000 * 1000 in casts
    assert 2 * 1000 in casts


def test_16_bit_training_halves_weights_gradients_and_state(in_child: InChild) -> None:
    """`precision: bf16` builds the model in bf16, and the optimizer follows."""
    document = job(layers(1000, 1000), training={"precision": "bf16"})

    total = by_role(in_child(children.trace, document))

    assert total[Role.PARAMETER] == WEIGHTS // 2
    assert total[Role.OPTIMIZER] == 2 * WEIGHTS // 2


def test_master_weights_add_an_fp32_copy_with_fp32_state(in_child: InChild) -> None:
    """The copy and both moments are in fp32."""
    document = job(
        layers(1000, 1000),
        training={"precision": "bf16", "masterWeights": True, "optimizer": {"name": "adamw"}},
    )

    total = by_role(in_child(children.trace, document))

    assert total[Role.OPTIMIZER] == WEIGHTS + 2 * WEIGHTS


def test_checkpointing_lowers_the_peak_and_computes_again(in_child: InChild) -> None:
    """Full checkpointing keeps layer inputs only; the forward's products run twice."""
    plain, saved = (
        in_child(
            children.trace,
            job(
                llama(),
                batch=8,
                input={"sequenceLength": 256},
                training={"gradientCheckpointing": mode, "useCache": False},
            ),
        )
        for mode in ("none", "full")
    )

    assert fault(saved) is None
    assert peak(saved) < peak(plain)
    assert allocated_by(saved, "aten.silu", Phase.BACKWARD)
    assert not allocated_by(plain, "aten.silu", Phase.BACKWARD)


@pytest.mark.parametrize("reentrant", [True, False])
def test_both_kinds_of_checkpointing_work_under_autocast(
    in_child: InChild, reentrant: bool
) -> None:
    """What is computed again runs under autocast too, so nothing is kept in fp32."""
    document = job(
        llama(),
        input={"sequenceLength": 64},
        training={
            "precision": "amp-bf16",
            "gradientCheckpointing": {"mode": "full", "reentrant": reentrant},
        },
    )

    trace = in_child(children.trace, document)

    assert fault(trace) is None
    again = allocated_by(trace, "aten.silu", Phase.BACKWARD)
    assert again == [2 * 64 * 512 * 2] * (2 * 4)


def test_old_versions_keep_gradients_through_the_forward_pass(in_child: InChild) -> None:
    """Before torch 2.0 `zero_grad` fills with zeros: gradients are alive in the next forward."""
    new, old = (
        in_child(children.trace, job(layers(1000, 1000), frameworkVersion=version))
        for version in ("2.0.1", "1.13.1")
    )

    assert by_role(new)[Role.GRADIENT] == 2 * WEIGHTS
    assert by_role(old)[Role.GRADIENT] == WEIGHTS


def test_accumulation_adds_to_the_gradients_that_are_there(in_child: InChild) -> None:
    """Two micro-steps make gradients once; the second ones are temporary."""
    document = job(layers(1000, 1000), training={"gradientAccumulationSteps": 8})

    trace = in_child(children.trace, document)

    assert by_role(trace)[Role.GRADIENT] == 2 * WEIGHTS


def test_ddp_keeps_a_second_copy_of_the_gradients_unless_they_are_views(in_child: InChild) -> None:
    """Buckets hold every gradient once more; with views the gradients are the buckets."""
    copy, view = (
        in_child(
            children.trace,
            job(
                layers(1000, 1000),
                parallelism={"strategy": "ddp", "dataParallel": 2, "gradientAsBucketView": flag},
            ),
        )
        for flag in (False, True)
    )

    assert by_role(copy)[Role.COMMUNICATION] == WEIGHTS
    assert by_role(view)[Role.COMMUNICATION] == 0


def test_ema_and_evaluation_are_in_the_trace(in_child: InChild) -> None:
    """An average is a second set of weights; an evaluation is a phase of its own."""
    document = job(layers(1000, 1000), training={"ema": True, "evaluation": {"batchSize": 512}})

    trace = in_child(children.trace, document)

    assert by_role(trace)[Role.PARAMETER] == 2 * WEIGHTS
    assert 512 * 1000 * 4 in allocated_by(trace, "aten.addmm", Phase.EVALUATION)


def test_emptying_the_cache_is_an_event(in_child: InChild) -> None:
    """`emptyCache` puts one event between the two steps."""
    document = job(layers(10, 10), training={"emptyCache": {"everySteps": 10}})

    trace = in_child(children.trace, document)

    assert list(trace.kinds).count(EventKind.EMPTY_CACHE) == 1


def test_compile_is_traced_as_eager_and_said_so(in_child: InChild) -> None:
    """A compiled job has the eager trace and an unknown that says the figure is high."""
    document = job(torchvision(), training={"compile": True})

    trace = in_child(children.trace, document)

    assert [(u.code, u.path) for u in trace.unknowns] == [(UnknownCode.FEATURE, "training.compile")]


def test_inference_has_no_gradients_and_no_optimizer(in_child: InChild) -> None:
    """An inference job holds weights, one batch and what a forward pass needs at a time."""
    trace = in_child(children.trace, job(torchvision(), phase="infer"))

    assert set(by_role(trace)) == {Role.PARAMETER, Role.INPUT, Role.TEMPORARY}
    assert "aten.convolution_backward" not in operators(trace)


def test_generation_ends_with_the_whole_cache(in_child: InChild) -> None:
    """At the last token the cache has keys and values of every layer for the whole length."""
    document = job(
        llama(),
        phase="infer",
        input={"sequenceLength": 200, "maxNewTokens": 100},
        training={"precision": "bf16"},
    )

    trace = in_child(children.trace, document)

    one = 2 * 2 * 200 * 32 * 2
    last = [size for size in allocated_by(trace, "aten.cat", Phase.GENERATION) if size == one]
    assert len(last) == 2 * 4


def test_recurrent_layers_are_named_as_traced_otherwise(in_child: InChild) -> None:
    """cuDNN's recurrent kernels are not modelled, and the estimate says so."""
    document = job({"source": "timm", "name": "sequencer2d_s"})

    trace = in_child(children.trace, document)

    assert [(u.code, u.path) for u in trace.unknowns] == [(UnknownCode.KERNEL, "model")]


def test_casts_are_cached_while_a_checkpointed_forward_runs_without_gradients(
    in_child: InChild,
) -> None:
    """Each weight is cast once a region and kept to its end, as `cached_cast` does."""
    document = job(
        bert(),
        training={
            "precision": "amp-fp16",
            "gradientCheckpointing": {"mode": "full", "reentrant": True},
        },
    )
    cast = 2 * 64 * 128
    """Bytes of the fp16 copy of a feed-forward weight."""

    trace = in_child(children.trace, document)

    lives = kept_at_backward(trace, cast, "aten._to_copy")
    assert lives == 0
    assert most_alive(trace, cast, "aten._to_copy", Phase.FORWARD) >= 2 * 2


def test_clipping_makes_one_number_a_gradient_and_changes_gradients_in_place(
    in_child: InChild,
) -> None:
    """A norm of 4 bytes for each tensor, nothing of a gradient's size."""
    document = job(layers(1000, 1000), training={"optimizer": {"name": "sgd"}})

    plain = in_child(children.trace, document)
    document["training"]["clipGradNorm"] = True
    clipped = in_child(children.trace, document)

    assert allocated_by(clipped, "aten._foreach_norm", Phase.OPTIMIZER) == [4, 4] * 2
    assert peak(clipped) - peak(plain) < 1000


def test_a_loss_scale_is_a_few_numbers(in_child: InChild) -> None:
    """fp16 under autocast unscales in place: no tensor of a gradient's size more than in bf16."""
    document = job(layers(1000, 1000), training={"precision": "amp-fp16"})

    scaled = in_child(children.trace, document)
    document["training"]["precision"] = "amp-bf16"
    plain = in_child(children.trace, document)

    assert 0 < peak(scaled) - peak(plain) < 1000


def test_the_average_is_moved_with_temporaries_of_one_tensor(in_child: InChild) -> None:
    """Twice scaled and once summed: at most three tensors of one weight, then none."""
    document = job(layers(1000, 1000), training={"optimizer": {"name": "sgd"}, "ema": True})

    trace = in_child(children.trace, document)

    weight = 4 * 1000 * 1000
    assert sizes_in(trace, Phase.OPTIMIZER).count(weight) == 3 * 2


def test_an_evaluation_holds_the_outputs_of_the_batch_before(in_child: InChild) -> None:
    """The usual loop rebinds its outputs after the next forward: two are alive for a moment."""
    document = job(layers(1000, 1000), training={"evaluation": {"batchSize": 512}})

    kept = in_child(children.trace, document)
    document["training"]["keepOutputs"] = False
    dropped = in_child(children.trace, document)

    outputs = 512 * 1000 * 4
    assert most_alive(kept, outputs, "aten.addmm", Phase.EVALUATION) == 2
    assert most_alive(dropped, outputs, "aten.addmm", Phase.EVALUATION) == 1


def test_a_loader_that_copies_ahead_has_memory_of_its_own(in_child: InChild) -> None:
    """Images come from a second stream: bytes and floats of each, three batches at most at once."""
    size = [3, 64, 64]
    pixels = 2 * 3 * 64 * 64
    document = job(torchvision("resnet18"), input={"imageSize": size, "batchSize": 2})
    document["input"]["prefetchBatches"] = 1

    trace = in_child(children.trace, document)

    beside = [trace.sizes[i] for i, stream in enumerate(trace.streams) if stream]
    assert {pixels, 4 * pixels} <= set(beside)
    live = most = 0
    for kind, tensor in zip(trace.kinds, trace.ids, strict=True):
        if kind in (EventKind.ALLOC, EventKind.FREE) and trace.streams[tensor]:
            live += trace.sizes[tensor] * (1 if kind == EventKind.ALLOC else -1)
            most = max(most, live)
    assert 3 * 4 * pixels <= most < 3 * 4 * pixels + pixels + 1024


def test_without_batches_ahead_everything_is_on_one_stream(in_child: InChild) -> None:
    """The loop copies its batch itself."""
    trace = in_child(children.trace, job(torchvision("resnet18"), input={"imageSize": [3, 64, 64]}))

    assert set(trace.streams) == {0}
