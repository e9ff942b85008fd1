"""What one rank computes: heads, widths, layers, experts and tokens of its own."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.errors import SpecError, UnsupportedJobError
from estimator.sharding import Position, positions_of
from estimator.sharding.pieces import piece_of
from estimator.sharding.shares import require_group
from estimator.spec import JobSpec, Precision, Strategy, Task, parse_spec
from tests.estimator.frontends.reading import llama
from tests.estimator.sharding import traces

MIXTRAL = {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}


def spec_of(model: dict[str, Any] | None = None, **parallelism: Any) -> JobSpec:
    """Return a job on a small Llama of 4 layers, 8 heads, 2 key-value heads, width 512."""
    training = parallelism.pop("training", {"precision": "bf16"})
    return parse_spec(
        {
            "framework": "pytorch",
            "model": model or llama(vocab_size=1000),
            "input": {"batchSize": 2, "sequenceLength": 64},
            "training": training,
            "parallelism": parallelism,
        }
    )


def config_of(spec: JobSpec, stage: int = 0) -> dict[str, Any]:
    """Return the configuration of the rank at *stage*."""
    return piece_of(spec, Position(stage=stage)).model.config


def test_tensor_parallel_divides_heads_widths_and_vocabulary() -> None:
    """The hidden width stays; two key-value heads over four ranks are one each, copied."""
    config = config_of(spec_of(tensorParallel=4))

    assert config["num_attention_heads"] == 2
    assert config["num_key_value_heads"] == 1
    assert config["intermediate_size"] == 128
    assert config["vocab_size"] == 250
    assert (config["hidden_size"], config["head_dim"]) == (256, 32)


@pytest.mark.parametrize(
    ("parallelism", "path"),
    [
        ({"tensorParallel": 3}, "parallelism.tensorParallel"),
        ({"pipelineParallel": 5}, "parallelism.pipelineParallel"),
        ({"contextParallel": 3}, "parallelism.contextParallel"),
        ({"expertParallel": 2, "dataParallel": 2}, "parallelism.expertParallel"),
    ],
)
def test_degrees_that_do_not_divide_are_refused_by_path(
    parallelism: dict[str, Any], path: str
) -> None:
    """Heads, layers, tokens and experts: each has its path in the message."""
    with pytest.raises(SpecError) as caught:
        piece_of(spec_of(**parallelism), Position())

    assert {problem.path for problem in caught.value.problems} == {path}


@pytest.mark.parametrize("value", [0, -1, 1.5, "8", [1], True])
@pytest.mark.parametrize("key", ["num_key_value_heads", "intermediate_size", "vocab_size"])
def test_what_is_no_number_of_anything_is_not_divided(key: str, value: object) -> None:
    """Named by its path, like a degree that does not divide."""
    with pytest.raises(SpecError) as caught:
        piece_of(spec_of(llama(**{key: value}), tensorParallel=2), Position())

    assert {problem.path for problem in caught.value.problems} == {f"model.config.{key}"}


@pytest.mark.parametrize(
    ("heads", "error"),
    [(0, SpecError), (-1, SpecError)]
    + [(value, UnsupportedJobError) for value in (1.5, "8", [1], True)],
)
def test_heads_of_no_number_are_not_divided(heads: object, error: type[Exception]) -> None:
    """A configuration without a number of heads is of no transformer that is known."""
    with pytest.raises(error):
        piece_of(spec_of(llama(num_attention_heads=heads), tensorParallel=2), Position())


def test_first_middle_and_last_stage_are_the_distinct_ranks() -> None:
    """Sixteen ranks in four stages: ranks 0, 4 and 12 begin the kinds there are."""
    spec = spec_of(pipelineParallel=4, dataParallel=4)

    assert positions_of(spec) == (
        Position(rank=0, stage=0),
        Position(rank=4, stage=1),
        Position(rank=12, stage=3),
    )
    assert positions_of(spec_of(dataParallel=4)) == (Position(),)


def test_the_embedding_is_on_the_first_stage_and_the_head_on_the_last() -> None:
    """A middle stage has neither."""
    spec = spec_of(pipelineParallel=4)

    first, middle, last = (piece_of(spec, Position(stage=stage)).model for stage in (0, 1, 3))

    assert first.task is middle.task is Task.FEATURE_EXTRACTION
    assert first.config["vocab_size"] == 1000
    assert middle.config["vocab_size"] == 1
    assert last.task is Task.CAUSAL_LM
    assert last.config["vocab_size"] == 1000
    assert {first.config["num_hidden_layers"], last.config["num_hidden_layers"]} == {1}


def test_context_parallel_divides_the_sequence() -> None:
    """Each rank has its piece of the tokens."""
    piece = piece_of(spec_of(contextParallel=4), Position())

    assert piece.input.sequence_length == 16


def test_expert_parallel_leaves_the_experts_of_one_rank() -> None:
    """Eight experts over four ranks are two."""
    model = llama(**MIXTRAL)

    config = config_of(spec_of(model, expertParallel=4, dataParallel=4))

    assert config["num_local_experts"] == 2


@pytest.mark.parametrize(
    "parallelism",
    [
        {"expertParallel": 8, "dataParallel": 8},
        {"expertParallel": 2, "dataParallel": 4, "strategy": "zero1"},
    ],
)
def test_experts_that_are_not_modelled_are_refused_with_a_hint(
    parallelism: dict[str, Any],
) -> None:
    """Fewer experts than each token wants, or experts whose state has another group."""
    with pytest.raises(UnsupportedJobError) as caught:
        piece_of(spec_of(llama(**MIXTRAL), **parallelism), Position())

    assert caught.value.path == "parallelism.expertParallel"
    assert caught.value.hint


@pytest.mark.parametrize("strategy", ["dp", "mirrored"])
def test_strategies_of_one_process_are_left_to_the_frontend_to_refuse(strategy: str) -> None:
    """They are not silently taken for a job on one card."""
    piece = piece_of(spec_of(strategy=strategy, dataParallel=2), Position())

    assert piece.parallelism.strategy is Strategy(strategy)


def test_a_device_map_is_left_to_the_frontend_whatever_the_strategy() -> None:
    """It is refused by name there."""
    piece = piece_of(spec_of(strategy="fsdp", dataParallel=2, deviceMap="auto"), Position())

    assert piece.parallelism.device_map == "auto"


def test_the_engine_trains_16_bit_weights_where_the_job_says_amp() -> None:
    """DeepSpeed and Megatron have masters of their own, in parts: the traced job has none."""
    training = {"precision": "amp-bf16", "masterWeights": True}

    piece = piece_of(spec_of(strategy="zero2", dataParallel=2, training=training), Position())

    assert piece.training.precision is Precision.BF16
    assert not piece.training.master_weights


def test_fsdp_computes_in_its_own_precision() -> None:
    """Mixed precision on fp32 shards is traced as 16-bit weights."""
    mixed = {"mixedPrecision": {"param": "bf16", "reduce": "fp32"}}

    piece = piece_of(
        spec_of(strategy="fsdp", dataParallel=2, training={"precision": "fp32"}, **mixed),
        Position(),
    )

    assert piece.training.precision is Precision.BF16


@pytest.mark.parametrize("strategy", ["fsdp", "zero1", "zero2", "zero3"])
def test_a_group_of_unknown_size_is_refused_and_not_taken_as_one(strategy: str) -> None:
    """One rank would be the largest need there is: a wrong no."""
    with pytest.raises(UnsupportedJobError) as caught:
        require_group(spec_of(strategy=strategy))

    assert caught.value.path == "parallelism.dataParallel"
    require_group(spec_of(strategy=strategy, dataParallel=1))


@pytest.mark.parametrize(
    ("changes", "keeps"),
    [
        ({}, False),
        ({"implementation": "fsdp1"}, True),
        ({"training": {"keepOutputs": True}}, True),
    ],
)
def test_trainers_with_fully_shard_let_go_of_the_outputs(
    changes: dict[str, Any], keeps: bool
) -> None:
    """torchtitan, torchtune and transformers' Trainer do, unless the job says otherwise."""
    spec = traces.spec_of(**{"strategy": "fsdp", "dataParallel": 8, **changes})

    assert piece_of(spec, Position()).training.keep_outputs is keeps
