"""JAX programs: axlearn's fuji models and MaxText."""

from __future__ import annotations

import pytest

from tests.admission.detect.jobs import container, found, job, pytorchjob, read, read_args

PERF = ("python3", "/usr/local/bin/fuji-train-perf.py")
TRAINER = ("python3", "-m", "axlearn.common.launch_trainer_main", "--module=text.gpt.c4_trainer")
MAXTEXT = ("python3", "MaxText/train.py", "MaxText/configs/base.yml")
CONFIG = "model.config"
STEPS = "training.gradientAccumulationSteps"


def test_a_global_batch_is_shared_by_replicas_and_accumulation() -> None:
    """64 sequences over 8 * 2 replicas and 2 steps are 2 on each device."""
    reading = read_args(
        *PERF,
        "--config=fuji-7B-v2-flash",
        "--ici_fsdp=8",
        "--dcn_dp=2",
        "--gbs=64",
        "--ga=2",
        gpus=8,
    )

    assert reading.spec is not None
    assert found(
        reading,
        "framework",
        f"{CONFIG}.intermediate_size",
        f"{CONFIG}.vocab_size",
        "input.batchSize",
        "input.sequenceLength",
        STEPS,
        "training.precision",
        "parallelism.dataParallel",
        "parallelism.shardGroup",
    ) == {
        "framework": "jax",
        f"{CONFIG}.intermediate_size": 11008,
        f"{CONFIG}.vocab_size": 32768,
        "input.batchSize": 64 // (16 * 2),
        "input.sequenceLength": 4096,
        STEPS: 2,
        "training.precision": "amp-bf16",
        "parallelism.dataParallel": 16,
        "parallelism.shardGroup": 8,
    }


@pytest.mark.parametrize(
    ("name", "batch", "length", "heads"),
    [
        ("fuji-7B-v1", 2048 // 16, 2048, 32),
        ("fuji-7B-v2-flash-single-host", 1024 // 32 // 16, 4096, 32),
        ("fuji-70B-v2", 1024 // 16, 4096, 8),
        ("fuji-8B-v3-tiktoken-flash", 2048 // 16, 8192, 8),
        ("fuji-3B-v3-flash-fp8-single-host", 2048 // 128 // 16, 8192, 8),
    ],
)
def test_names_tell_size_version_and_batch(name: str, batch: int, length: int, heads: int) -> None:
    """A configuration's tokens a step, over 2 processes of 8 GPUs."""
    reading = read_args(*TRAINER, f"--config={name}", "--num_processes=2", gpus=8)

    assert found(
        reading,
        "model.name",
        "input.batchSize",
        "input.sequenceLength",
        f"{CONFIG}.num_key_value_heads",
    ) == {
        "model.name": name,
        "input.batchSize": batch,
        "input.sequenceLength": length,
        f"{CONFIG}.num_key_value_heads": heads,
    }


@pytest.mark.parametrize(
    "flags",
    [
        ("--config=fuji-9B-v2",),
        ("--config=fuji-7B",),
        ("--config=$CONFIG",),
        ("--config=fuji-7B-v2", "--gbs=many"),
        ("--config=fuji-7B-v2", "--ici_fsdp=0"),
        (),
    ],
)
def test_what_of_a_fuji_cannot_be_read_is_named(flags: tuple[str, ...]) -> None:
    """Neither a size nor a batch is guessed."""
    reading = read_args(*PERF, *flags, gpus=8)

    assert reading.spec is None
    assert reading.unknowns


def test_maxtext_overrides_stand_over_its_defaults() -> None:
    """The batch is of one device; remat is full unless a policy is named."""
    reading = read_args(
        *MAXTEXT, "model_name=llama2-7b", "per_device_batch_size=4", "remat_policy=minimal", gpus=8
    )

    assert reading.spec is not None
    assert found(
        reading,
        "framework",
        "model.name",
        "input.batchSize",
        "input.sequenceLength",
        "training.gradientCheckpointing",
        "parallelism.strategy",
        "parallelism.dataParallel",
    ) == {
        "framework": "jax",
        "model.name": "meta-llama/Llama-2-7b-hf",
        "input.batchSize": 4,
        "input.sequenceLength": 2048,
        "training.gradientCheckpointing": {"mode": "selective", "policy": "minimal"},
        "parallelism.strategy": "fsdp",
        "parallelism.dataParallel": 8,
    }


def test_maxtext_builds_its_default_model_from_dimensions() -> None:
    """`base_emb_dim` and its like are the model where none is named."""
    reading = read_args(
        *MAXTEXT,
        "base_emb_dim=1024",
        "ici_tensor_parallelism=2",
        gpus=8,
        env={"NNODES": "2"},
    )

    assert found(
        reading,
        f"{CONFIG}.hidden_size",
        f"{CONFIG}.num_hidden_layers",
        "input.batchSize",
        "parallelism.tensorParallel",
        "parallelism.dataParallel",
    ) == {
        f"{CONFIG}.hidden_size": 1024,
        f"{CONFIG}.num_hidden_layers": 16,
        "input.batchSize": 12,
        "parallelism.tensorParallel": 2,
        "parallelism.dataParallel": 16 // 2,
    }


def test_maxtext_counts_the_pods_that_find_each_other() -> None:
    """Two pods with a coordinator are one job; without one each is its own."""
    script = (*MAXTEXT, "model_name=llama2-7b")
    alone = job(container(*script, gpus=8))
    joined = job(container(*script, gpus=8, env={"JAX_COORDINATOR_ADDRESS": "a:1"}))
    for whole in (alone, joined):
        whole["spec"] |= {"parallelism": 2, "completions": 2, "completionMode": "Indexed"}

    degree = "parallelism.dataParallel"
    assert found(read(alone), degree) == {degree: 8}
    assert found(read(joined), degree) == {degree: 16}


@pytest.mark.parametrize(
    "pair", ["model_name=made-up", "per_device_batch_size=0.5", "per_device_batch_size={{ b }}"]
)
def test_what_of_maxtext_cannot_be_read_is_named(pair: str) -> None:
    """An unknown model, a share of a sequence, a template."""
    reading = read_args(*MAXTEXT, pair, gpus=8)

    assert reading.spec is None
    assert reading.unknowns


def test_maxtext_replicates_its_shards_over_the_axis_data() -> None:
    """Two slices of eight devices: sixteen replicas, each group of eight holds the whole state."""
    reading = read(
        pytorchjob(
            container(
                *MAXTEXT,
                "model_name=llama2-7b",
                "per_device_batch_size=2",
                "ici_fsdp_parallelism=8",
                "dcn_data_parallelism=2",
                gpus=8,
                env={"NNODES": "2"},
            ),
            workers=1,
        )
    )

    assert found(reading, "parallelism.dataParallel", "parallelism.shardGroup") == {
        "parallelism.dataParallel": 16,
        "parallelism.shardGroup": 8,
    }
