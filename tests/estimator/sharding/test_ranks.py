"""Real small models on one rank: parts that add up, and traces that can be replayed."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.trace import Phase, Role
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import job, llama
from tests.estimator.sharding import children
from tests.estimator.sharding.traces import faults, phase

pytestmark = pytest.mark.torch

HIDDEN, KEYS, WIDTH, VOCABULARY, LAYERS = 256, 64, 512, 1024, 8
LAYER = 2 * HIDDEN * HIDDEN + 2 * HIDDEN * KEYS + 3 * HIDDEN * WIDTH + 2 * HIDDEN
EMBEDDING = HIDDEN * VOCABULARY
WHOLE = LAYERS * LAYER + 2 * EMBEDDING + HIDDEN
"""Elements of the small Llama: layers, embedding, head, the last norm."""
MIXTRAL = {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
SMALL_BUCKET = {"zero": {"reduceBucketElements": 1000}}


def parallel(model: dict[str, Any] | None = None, **parallelism: Any) -> dict[str, Any]:
    """Return a bf16 AdamW job on the small Llama over several ranks; `rest` goes beside it."""
    rest = parallelism.pop("rest", {})
    sizes = {"sequenceLength": 64}
    small = llama(num_hidden_layers=LAYERS, vocab_size=VOCABULARY)
    training = {"precision": "bf16", **rest.pop("training", {})}
    return job(model or small, training=training, parallelism=parallelism, input=sizes, **rest)


LORA = {"adapter": {"type": "lora", "targetModules": ["q_proj", "v_proj"]}}
QLORA = {**LORA, "quantization": {"bits": 4, "scheme": "nf4"}}
CHECKPOINTED = {"training": {"gradientCheckpointing": "full", "clipGradNorm": True}}


@pytest.mark.parametrize(
    "document",
    [
        parallel(strategy="fsdp", dataParallel=4),
        parallel(strategy="fsdp", dataParallel=4, implementation="fsdp1", rest=LORA),
        parallel(strategy="fsdp", dataParallel=4, rest=QLORA),
        parallel(strategy="fsdp", dataParallel=4, rest=CHECKPOINTED),
        parallel(strategy="fsdp", dataParallel=4, offload="parameters"),
        parallel(strategy="zero3", dataParallel=4, rest=LORA),
        parallel(strategy="zero2", dataParallel=4, offload="optimizer"),
        parallel(strategy="zero1", dataParallel=4, rest=CHECKPOINTED),
        parallel(tensorParallel=2, sequenceParallel=True),
        parallel(contextParallel=4, strategy="fsdp"),
        parallel(llama(num_hidden_layers=LAYERS, **MIXTRAL), expertParallel=2, dataParallel=2),
        parallel(
            implementation="megatron",
            distributedOptimizer=True,
            tensorParallel=2,
            pipelineParallel=4,
            dataParallel=2,
            microBatches=8,
        ),
    ],
)
def test_every_distinct_rank_can_be_replayed(in_child: InChild, document: dict[str, Any]) -> None:
    """Tensors are made once and freed while they are there, in every combination."""
    for trace in in_child(children.ranks, document):
        assert faults(trace) == []


@pytest.mark.parametrize("strategy", ["fsdp", "zero3"])
def test_weights_and_states_are_those_of_the_closed_form(in_child: InChild, strategy: str) -> None:
    """FSDP: 2 + 4 bytes over N; ZeRO-3: 2 + 12 over N, and small tensors whole."""
    (trace,) = in_child(children.ranks, parallel(strategy=strategy, dataParallel=4, **SMALL_BUCKET))

    end = phase(trace, 2, Phase.OPTIMIZER).end
    small = LAYERS * (2 * HIDDEN + 2 * HIDDEN * HIDDEN + 2 * HIDDEN * KEYS) + HIDDEN
    whole = small if strategy == "zero3" else 0
    states = 12 if strategy == "zero3" else 4

    expected = 2 * (WHOLE // 4 + whole * 3 // 4)
    assert end[Role.PARAMETER] == pytest.approx(expected, abs=2000)
    assert end[Role.OPTIMIZER] == pytest.approx(states * WHOLE / 4, abs=100)


def test_stages_and_heads_add_up_to_the_model(in_child: InChild) -> None:
    """Two ranks of tensor parallelism times four stages hold every weight, norms twice."""
    document = parallel(tensorParallel=2, pipelineParallel=4, microBatches=4)

    first, middle, last = in_child(children.ranks, document)

    loaded = [phase(each, 0, Phase.LOAD).end[Role.PARAMETER] for each in (first, middle, last)]
    norms = 2 * HIDDEN
    layer = (LAYER - norms) // 2 + norms
    # Every stage is built with a last norm, and a middle one with an embedding of one word.
    assert loaded[0] == pytest.approx(2 * (2 * layer + EMBEDDING // 2), abs=2 * HIDDEN + 1000)
    assert loaded[1] == pytest.approx(2 * 2 * layer, abs=4 * HIDDEN + 1000)
    assert loaded[2] == pytest.approx(2 * (2 * layer + EMBEDDING // 2), abs=2 * HIDDEN + 1000)


@pytest.mark.parametrize("strategy", ["dp", "mirrored"])
def test_one_process_on_many_cards_is_refused_by_name(in_child: InChild, strategy: str) -> None:
    """It is not silently estimated as a job on one card."""
    refusal = in_child(children.refused, parallel(strategy=strategy, dataParallel=2))

    assert (refusal.code, refusal.path) == ("parallelism", "parallelism.strategy")


def test_the_exact_mode_changes_no_byte(in_child: InChild) -> None:
    """Eight layers traced in full, and extended: the same events on the same rank."""
    document = parallel(strategy="fsdp", dataParallel=4, rest=CHECKPOINTED)

    extended, full = in_child(children.both_modes, document)

    assert extended.facts["layersTraced"] == f"4 of {LAYERS}"
    assert "layersTraced" not in full.facts
    assert (extended.kinds, extended.sizes) == (full.kinds, full.sizes)
