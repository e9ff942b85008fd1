"""What a job's own version of PyTorch keeps, where it is not what the newest keeps.

Expected sizes are those of the nodes in torch/csrc/autograd/generated/Functions.h of that version.
"""

from __future__ import annotations

from typing import Any

import pytest

from estimator.trace import EventKind, Phase, Trace
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import bert, job, kept, llama, operators, peak, torchvision

pytestmark = pytest.mark.torch

BATCH, LENGTH, HEADS = 2, 128, 4
SCORES = 4 * BATCH * HEADS * LENGTH * LENGTH
"""Bytes of one fp32 score matrix of the small BERT."""


def eager_bert(version: str, **training: Any) -> dict[str, Any]:
    """Return a BERT of two layers with attention in parts, without dropout."""
    document = job(
        bert(attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0),
        input={"batchSize": BATCH, "sequenceLength": LENGTH},
        training=training,
    )
    document["model"]["attention"] = "eager"
    document["frameworkVersion"] = version
    return document


def num_layers(document: dict[str, Any]) -> int:
    """Return the layers of a transformers model."""
    return int(document["model"]["config"]["num_hidden_layers"])


def test_softmax_keeps_its_input_before_1_11(in_child: InChild) -> None:
    """One score matrix a layer more: pytorch/pytorch#65242 is in 1.11."""
    old, new = (eager_bert(version) for version in ("1.10.2", "1.11.0"))

    more = kept(in_child(children.trace, old), SCORES) - kept(in_child(children.trace, new), SCORES)

    assert more == num_layers(old)


def test_relu_in_place_keeps_one_tensor_in_every_version(in_child: InChild) -> None:
    """VGG's activations are in place: that older versions keep the input changes nothing."""
    old, new = (
        in_child(
            children.trace,
            {**job(torchvision("vgg11"), input={"imageSize": [3, 64, 64]}), "frameworkVersion": v},
        )
        for v in ("1.9.1", "1.10.2")
    )

    assert peak(old) == peak(new)


@pytest.mark.parametrize(
    ("operator", "version", "saved"),
    [
        ("relu", "1.9.1", 2),
        ("relu", "1.10.0", 1),
        ("softplus", "1.10.0", 2),
        ("softplus", "1.11.0", 1),
        ("mean", "1.12.0", 0),
        ("mean", "1.13.0", 1),
        ("mean", "2.1.0", 1),
        ("mean", "2.2.0", 0),
        ("stack", "1.5.0", 0),
        ("stack", "1.12.0", 2),
        ("stack", "1.13.0", 0),
        ("hardtanh_", "1.9.0", 1),
        ("hardtanh_", "1.10.0", 2),
        ("log_softmax", "1.10.0", 2),
        ("log_softmax", "1.11.0", 1),
        ("rms_norm", "2.8.0", 3),
        ("rms_norm", "2.9.0", 2),
    ],
)
def test_an_operator_keeps_what_its_version_keeps(
    in_child: InChild, operator: str, version: str, saved: int
) -> None:
    """Tensors of the input's size alive before backward, the operator's own result among them."""
    assert in_child(children.num_kept, operator, version) == saved


@pytest.mark.parametrize(
    "operator", ["relu", "softplus", "mean", "stack", "log_softmax", "softmax"]
)
@pytest.mark.parametrize("version", ["1.9.0", "2.0.0", "2.15.0"])
def test_a_rule_gives_gradients_of_the_right_shape(
    in_child: InChild, operator: str, version: str
) -> None:
    """Whatever a version keeps, each input gets a gradient of its own shape and dtype."""
    assert in_child(children.gradient_fits, operator, version)


def test_sdpa_takes_no_mask_and_no_dropout_in_a_fused_kernel_of_2_0(in_child: InChild) -> None:
    """fp32 with dropout: scores are kept in 2.0, and none from 2.1 on."""
    document = job(bert(), input={"batchSize": BATCH, "sequenceLength": LENGTH})
    document["model"]["attention"] = "sdpa"

    old = in_child(children.trace, {**document, "frameworkVersion": "2.0.1"})
    new = in_child(children.trace, {**document, "frameworkVersion": "2.1.2"})

    assert "aten._scaled_dot_product_efficient_attention" not in operators(old)
    assert "aten._scaled_dot_product_efficient_attention" in operators(new)
    assert kept(old, SCORES) >= num_layers(document)
    assert kept(new, SCORES) == 0


def test_a_norm_written_in_parts_does_not_change_with_the_version(in_child: InChild) -> None:
    """transformers writes RMSNorm out: no fused kernel takes its place in 2.9."""
    document = job(llama(), input={"sequenceLength": 128}, training={"precision": "bf16"})

    old = in_child(children.trace, {**document, "frameworkVersion": "2.8.0"})
    new = in_child(children.trace, {**document, "frameworkVersion": "2.9.0"})

    assert peak(old) == peak(new)


def test_old_foreach_adam_holds_two_copies_at_once(in_child: InChild) -> None:
    """The denominator of 2.0 is a tensor of its own beside the root it is made from."""
    document = job(bert(), training={"optimizer": {"name": "adamw", "foreach": True}})

    def most(trace: Trace) -> int:
        live = most = 0
        for kind, identifier, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
            where = trace.place_table[place]
            sign = {EventKind.ALLOC: 1, EventKind.FREE: -1}.get(EventKind(kind), 0)
            live += sign * trace.sizes[identifier] if sign else 0
            if where.phase is Phase.OPTIMIZER and where.step == 2:
                most = max(most, live)
        return most

    old = in_child(children.trace, {**document, "frameworkVersion": "2.0.1"})
    new = in_child(children.trace, {**document, "frameworkVersion": "2.1.2"})

    weights = sum(size for size, role in zip(new.sizes, new.roles, strict=True) if role == 0)
    assert weights > 0
    assert most(old) - most(new) == pytest.approx(weights, rel=0.02)
