"""torchtitan: TOML files, shipped and one's own, named configurations, flags."""

from __future__ import annotations

import pytest

from admission.codes import ReasonCode
from tests.admission.detect.jobs import codes, config_map, container, found, job, read, read_args

TITAN = ("torchrun", "--nproc_per_node=8", "-m", "torchtitan.train")
SHIPPED = "./torchtitan/models/llama3/train_configs/llama3_8b.toml"
STEPS = "training.gradientAccumulationSteps"
OWN = """
[model]
name = "qwen3"
flavor = "1.7B"
[training]
local_batch_size = 2
global_batch_size = 64
seq_len = 2048
[parallelism]
tensor_parallel_degree = 2
data_parallel_replicate_degree = 2
[activation_checkpoint]
mode = "selective"
selective_ac_option = "2"
[compile]
enable = true
"""


def test_a_shipped_file_tells_everything() -> None:
    """Flags stand over it; weights are fp32 shards, computed in bf16."""
    reading = read_args(
        *TITAN, "--job.config_file", SHIPPED, "--training.local_batch_size=3", gpus=8
    )

    assert reading.spec is not None
    assert found(
        reading,
        "model.name",
        "input.batchSize",
        "input.sequenceLength",
        "training.precision",
        "training.gradientCheckpointing",
        "parallelism.strategy",
        "parallelism.dataParallel",
        "parallelism.mixedPrecision",
        STEPS,
    ) == {
        "model.name": "meta-llama/Llama-3.1-8B",
        "input.batchSize": 3,
        "input.sequenceLength": 8192,
        "training.precision": "amp-bf16",
        "training.gradientCheckpointing": {"mode": "selective", "policy": "op"},
        "parallelism.strategy": "fsdp",
        "parallelism.dataParallel": 8,
        "parallelism.mixedPrecision": {"param": "bf16", "reduce": "fp32"},
        STEPS: 1,
    }


def test_a_file_of_ones_own_is_read() -> None:
    """8 processes over 2 leave 4 replicas, sharded in two groups of 2; 64 = 2 * 4 * 8."""
    body = job(
        container(
            *TITAN,
            "--job.config_file=/c/own.toml",
            gpus=8,
            volumeMounts=[{"name": "c", "mountPath": "/c"}],
        )
    )
    body["spec"]["template"]["spec"]["volumes"] = [{"name": "c", "configMap": {"name": "n"}}]

    reading = read(body, documents=config_map("n", own__toml=OWN))

    assert found(
        reading,
        "model.name",
        "input.batchSize",
        "training.gradientCheckpointing",
        "training.compile",
        "parallelism.tensorParallel",
        "parallelism.dataParallel",
        "parallelism.shardGroup",
        STEPS,
    ) == {
        "model.name": "Qwen/Qwen3-1.7B",
        "input.batchSize": 2,
        "training.gradientCheckpointing": {"mode": "full", "every": 2},
        "training.compile": True,
        "parallelism.tensorParallel": 2,
        "parallelism.dataParallel": 4,
        "parallelism.shardGroup": 2,
        STEPS: 8,
    }


def test_newer_releases_name_configurations_and_count_tokens() -> None:
    """`--module` and `--config` name one; the micro-batch is tokens over length."""
    named = read_args(*TITAN, "--module", "qwen3", "--config", "qwen3_14b", gpus=8)
    changed = read_args(
        *TITAN,
        "--config=qwen3_14b",
        "--training.num_tokens_per_microbatch_per_dp_rank=8192",
        "--training.max_context_length=2048",
        gpus=8,
    )

    assert found(named, "model.name", "input.batchSize", "input.sequenceLength") == {
        "model.name": "Qwen/Qwen3-14B",
        "input.batchSize": 4,
        "input.sequenceLength": 4096,
    }
    assert found(changed, "input.batchSize", "input.sequenceLength") == {
        "input.batchSize": 8192 // 2048,
        "input.sequenceLength": 2048,
    }


def test_the_old_folder_of_files_is_known() -> None:
    """The files once lay at the top of the repository, and train.py beside them."""
    reading = read_args(
        "torchrun",
        "--nproc_per_node=8",
        "torchtitan/train.py",
        "--job.config_file=./train_configs/llama3_70b.toml",
        gpus=8,
    )

    assert found(reading, "model.name", "input.batchSize", "parallelism.tensorParallel") == {
        "model.name": "meta-llama/Llama-3.1-70B",
        "input.batchSize": 8,
        "parallelism.tensorParallel": 8,
    }


def test_older_names_of_flags_count() -> None:
    """The first releases said `batch_size` and put the degrees under `training`."""
    reading = read_args(
        *TITAN,
        "--model.name=llama3",
        "--model.flavor=8B",
        "--training.batch_size=1",
        "--training.tensor_parallel_degree=4",
        gpus=8,
    )

    assert found(reading, "input.batchSize", "parallelism.dataParallel") == {
        "input.batchSize": 1,
        "parallelism.dataParallel": 2,
    }


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--job.config_file=/config/mine.toml",), ReasonCode.DOCUMENT),
        (("--job.config_file=$FILE",), ReasonCode.TEMPLATE),
        (("--config=mine",), ReasonCode.NO_MODEL),
        (("--model.name=llama3", "--model.flavor=9B"), ReasonCode.NO_MODEL),
        (("--model.name=llama3",), ReasonCode.NO_MODEL),
        (("--config=llama3_8b", "--training.local_batch_size=null"), ReasonCode.NO_BATCH),
        (("--config=llama3_8b", "--parallelism.tensor_parallel_degree=3"), ReasonCode.INVALID_SPEC),
    ],
)
def test_what_cannot_be_read_is_named(flags: tuple[str, ...], code: ReasonCode) -> None:
    """A file that is not seen, a name nobody knows, degrees that do not divide."""
    reading = read_args(*TITAN, *flags, gpus=8)

    assert reading.spec is None
    assert code in codes(reading)
