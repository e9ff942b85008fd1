"""A model traced with a few layers and extended is the model traced in full, event by event."""

from __future__ import annotations

from typing import Any

import pytest

from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import bert, job, llama
from tests.estimator.layering import children

pytestmark = pytest.mark.torch
DEEP = 10
EXTENDED = f"4 of {DEEP}"
LORA = {"type": "lora", "targetModules": ["q_proj", "v_proj"], "dropout": 0.1}
NF4 = {"bits": 4, "scheme": "nf4", "doubleQuant": True}


def deep(**rest: Any) -> dict[str, Any]:
    """Return a job on a Llama of ten layers."""
    training = {"precision": "bf16", **rest.pop("training", {})}
    sizes = {"sequenceLength": 64}
    return job(llama(num_hidden_layers=DEEP), training=training, input=sizes, **rest)


@pytest.mark.parametrize(
    "document",
    [
        deep(),
        deep(training={"gradientCheckpointing": "full"}),
        deep(training={"optimizer": {"name": "adamw", "fused": True}, "clipGradNorm": True}),
        deep(training={"precision": "amp-bf16", "gradientAccumulationSteps": 4}),
        deep(training={"masterWeights": True}),
        deep(training={"optimizer": {"name": "adamw", "bits": 8}}),
        deep(training={"optimizer": {"name": "adafactor"}}),
        deep(training={"optimizer": {"name": "adamw", "inBackward": True}}),
        deep(training={"zeroGrad": {"position": "after-step", "setToNone": False}}),
        deep(training={"evaluation": {"batchSize": 4}, "keepOutputs": False}),
        deep(adapter=LORA),
        deep(adapter=LORA, quantization=NF4),
        deep(phase="infer"),
        job(bert(num_hidden_layers=DEEP), input={"sequenceLength": 64}),
    ],
)
def test_an_extended_trace_is_the_trace_in_full(
    in_child: InChild, document: dict[str, Any]
) -> None:
    """Same events, sizes, kernels, places, notes: the exact mode has nothing to correct."""
    assert in_child(children.first_difference, document) == (EXTENDED, "")


@pytest.mark.parametrize(
    "document",
    [
        deep(parallelism={"strategy": "ddp", "dataParallel": 2}),
        deep(training={"optimizer": {"name": "adamw", "foreach": False}}),
        deep(adapter={"type": "lora", "targetModules": ["layers.1.self_attn.q_proj"]}),
        job(
            llama(
                model_type="gemma2", num_hidden_layers=DEEP, head_dim=32, query_pre_attn_scalar=32
            ),
            input={"sequenceLength": 64},
        ),
        job(llama(num_hidden_layers=6), input={"sequenceLength": 64}),
    ],
)
def test_what_is_not_proven_to_repeat_is_traced_in_full(
    in_child: InChild, document: dict[str, Any]
) -> None:
    """Buckets over all weights, named layers, alternating layers, few layers."""
    assert in_child(children.first_difference, document) == ("in full", "")
