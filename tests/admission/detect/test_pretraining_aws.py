"""The FSDP sample of AWS: dimensions, defaults, what its data loader does."""

from __future__ import annotations

import pytest

from admission.codes import ReasonCode
from tests.admission.detect.jobs import codes, found, read_args

LAUNCH = ("torchrun", "--nproc_per_node=8")
SCRIPT = (*LAUNCH, "/fsdp/train.py", "--hidden_width=2048", "--max_context_width=4096")
CONFIG = "model.config"


def test_defaults_are_the_scripts_own() -> None:
    """What is not given is what train.py takes: a GPT-NeoX, 2 sequences, AdamW, checkpointing."""
    reading = read_args(*SCRIPT, gpus=8)

    assert reading.spec is not None
    assert reading.is_certain
    assert found(
        reading,
        f"{CONFIG}.model_type",
        f"{CONFIG}.vocab_size",
        f"{CONFIG}.intermediate_size",
        f"{CONFIG}.num_key_value_heads",
        "input.batchSize",
        "training.optimizer.name",
        "training.gradientCheckpointing",
        "training.precision",
        "parallelism.strategy",
        "parallelism.dataParallel",
        "parallelism.mixedPrecision.param",
    ) == {
        f"{CONFIG}.model_type": "gpt_neox",
        f"{CONFIG}.vocab_size": 50432,
        f"{CONFIG}.intermediate_size": 4 * 2048,
        f"{CONFIG}.num_key_value_heads": None,
        "input.batchSize": 2,
        "training.optimizer.name": "adamw",
        "training.gradientCheckpointing": "full",
        "training.precision": "amp-bf16",
        "parallelism.strategy": "fsdp",
        "parallelism.dataParallel": 8,
        "parallelism.mixedPrecision.param": "bf16",
    }


@pytest.mark.parametrize(
    ("model_type", "kind", "heads"),
    [("llama_v2", "llama", 12), ("llama_v3", "llama", 12), ("mixtral", "mixtral", 12)],
)
def test_types_of_models_are_transformers_types(model_type: str, kind: str, heads: int) -> None:
    """Without `--num_key_value_heads` there are as many as heads, 12 by default."""
    reading = read_args(*SCRIPT, f"--model_type={model_type}")

    assert found(
        reading,
        f"{CONFIG}.model_type",
        f"{CONFIG}.num_key_value_heads",
        f"{CONFIG}.intermediate_size",
    ) == {
        f"{CONFIG}.model_type": kind,
        f"{CONFIG}.num_key_value_heads": heads,
        f"{CONFIG}.intermediate_size": 11008,
    }


def test_shortened_flags_count() -> None:
    """`argparse` takes a unique beginning: `--offload_act` is `--offload_activations`."""
    reading = read_args(*SCRIPT, "--offload_act=1", "--activation_check=0", "--bf16=0")

    assert found(
        reading,
        "training.activationOffload",
        "training.gradientCheckpointing",
        "training.precision",
        "parallelism.mixedPrecision",
    ) == {
        "training.activationOffload": True,
        "training.gradientCheckpointing": "none",
        "training.precision": "fp32",
        "parallelism.mixedPrecision": None,
    }


def test_unresolved_shards_leave_the_degree_out() -> None:
    """The job is judged as if one card held everything, and nobody is refused on it."""
    reading = read_args(
        "torchrun", "--nproc_per_node=$GPUS", "--nnodes=$NODES", *SCRIPT[2:], gpus=8
    )

    assert reading.spec is not None
    assert not reading.is_certain
    assert found(reading, "parallelism.strategy", "parallelism.dataParallel") == {
        "parallelism.strategy": "fsdp",
        "parallelism.dataParallel": None,
    }


def test_a_width_that_is_not_fed_is_a_doubt() -> None:
    """The loader makes sequences of 4096 tokens since 2024, whatever the width of the model."""
    wide = read_args(*SCRIPT[:-1], "--max_context_width=8192")
    usual = read_args(*SCRIPT)

    assert found(wide, "input.sequenceLength") == {"input.sequenceLength": 8192}
    assert not wide.is_certain
    assert found(usual, "input.sequenceLength") == {"input.sequenceLength": 4096}


def test_sharding_within_nodes_and_offload() -> None:
    """`hybrid` shards over the GPUs of a node; `--cpu_offload` moves the parameters out."""
    reading = read_args(
        "torchrun",
        "--nproc_per_node=8",
        "--nnodes=2",
        *SCRIPT[2:],
        "--sharding_strategy=hybrid",
        "--cpu_offload=1",
        "--validation_freq=10",
        gpus=8,
    )

    assert found(
        reading,
        "parallelism.shardGroup",
        "parallelism.dataParallel",
        "parallelism.offload",
        "training.evaluation.batchSize",
    ) == {
        "parallelism.shardGroup": 8,
        "parallelism.dataParallel": 16,
        "parallelism.offload": "parameters",
        "training.evaluation.batchSize": 4,
    }


@pytest.mark.parametrize(
    ("flag", "code"),
    [
        ("--train_batch_size=none", ReasonCode.NO_BATCH),
        ("--train_batch_size=$B", ReasonCode.TEMPLATE),
        ("--model_type=bloom", ReasonCode.NO_MODEL),
        ("--num_layers=99999999999999999999", ReasonCode.INVALID_SPEC),
        ("--sharding_strategy=none", ReasonCode.UNSUPPORTED),
    ],
)
def test_what_cannot_be_read_is_named(flag: str, code: ReasonCode) -> None:
    """A flag that has no value that is known is a finding of its own."""
    reading = read_args(*SCRIPT, flag)

    assert reading.spec is None
    assert code in codes(reading)


def test_another_train_py_in_such_a_folder_is_not_taken_for_it() -> None:
    """A script is the sample only with flags that nobody else has."""
    reading = read_args(*LAUNCH, "/fsdp/train.py", "--lr=0.1", gpus=8)

    assert reading.spec is None
    assert reading.partial == {"framework": "pytorch"}
