"""accelerate's configuration file decides what the command line does not."""

from __future__ import annotations

from typing import Any

import pytest

from admission.codes import ReasonCode
from admission.values import Reading
from tests.admission.detect.jobs import codes, config_map, container, found, job, read, read_script

HF = "run_clm.py --do_train --model_name_or_path=gpt2 --per_device_train_batch_size=4"
STRATEGY, DEGREE = "parallelism.strategy", "parallelism.dataParallel"
PRECISION, OFFLOAD = "training.precision", "parallelism.offload"
ZERO = """
compute_environment: LOCAL_MACHINE
deepspeed_config:
  offload_optimizer_device: none
  offload_param_device: cpu
  zero_stage: 3
distributed_type: DEEPSPEED
mixed_precision: bf16
num_machines: 1
num_processes: 4
use_cpu: false
"""
FSDP = """
distributed_type: FSDP
fsdp_config:
  fsdp_activation_checkpointing: true
  fsdp_auto_wrap_policy: SIZE_BASED_WRAP
  fsdp_reshard_after_forward: false
  fsdp_version: 2
mixed_precision: 'no'
num_processes: 2
"""


def _mounted(command: str, text: str, *, path: str = "/cfg", **env: str) -> Reading:
    mounts = [{"name": "v", "mountPath": path}]
    body = container(*command.split(), gpus=4, volumeMounts=mounts, env=env)
    obj: dict[str, Any] = job(body)
    obj["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "c"}}]
    return read(obj, documents=config_map("c", default_config__yaml=text, ds__json='{"a": 1}'))


NAMED = "accelerate launch --config_file /cfg/default_config.yaml "


def test_deepspeed_is_read() -> None:
    """ZeRO stage, offload, processes and precision, each with its source."""
    reading = _mounted(NAMED + HF, ZERO)

    assert found(reading, STRATEGY, DEGREE, OFFLOAD, PRECISION) == {
        STRATEGY: "zero3",
        DEGREE: 4,
        OFFLOAD: "parameters",
        PRECISION: "bf16",
    }
    assert reading.sources[STRATEGY] == "configmap c/default_config.yaml zero_stage"
    assert reading.unknowns == ()
    assert reading.warnings == ()


def test_fsdp_is_read() -> None:
    """Version, sharding, wrapping and checkpointing."""
    reading = _mounted(NAMED + HF, FSDP)

    assert found(reading, "parallelism", "training.gradientCheckpointing") == {
        "parallelism": {
            "strategy": "fsdp",
            "implementation": "fsdp2",
            "reshardAfterForward": False,
            "wrap": "size",
            "dataParallel": 2,
        },
        "training.gradientCheckpointing": "full",
    }


@pytest.mark.parametrize(
    ("text", "flags", "strategy", "degree"),
    [
        (ZERO, "--zero_stage=2", "zero2", 4),
        (ZERO, "--num_processes 2", "zero3", 2),
        (ZERO, "--multi_gpu", "ddp", 4),
        (ZERO, "--use_fsdp", "fsdp", 4),
        ("distributed_type: MULTI_GPU\nnum_processes: 4", "", "ddp", 4),
        ("distributed_type: MULTI_GPU\nnum_processes: null", "", "ddp", 4),
        ("distributed_type: MULTI_GPU\nnum_processes: 8\nnum_machines: 2", "", "ddp", 8),
        ("distributed_type: 'NO'\nnum_processes: 8", "", "dp", 4),
        ("distributed_type: DEEPSPEED\ndeepspeed_config: {}", "", "zero2", 4),
        ("distributed_type: FSDP\nfsdp_config: {sharding_strategy: NO_SHARD}", "", "ddp", 4),
        ("distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: 1}", "", "fsdp", 4),
    ],
)
def test_flags_count_over_the_file(text: str, flags: str, strategy: str, degree: int) -> None:
    """And what a file leaves out is accelerate's default."""
    reading = _mounted(f"{NAMED}{flags} {HF}", text)

    assert found(reading, STRATEGY, DEGREE) == {STRATEGY: strategy, DEGREE: degree}


@pytest.mark.parametrize(
    ("command", "path", "env"),
    [
        ("accelerate launch", "/root/.cache/huggingface/accelerate", {}),
        ("accelerate launch", "/hf/accelerate", {"HF_HOME": "/hf"}),
        ("accelerate launch", "/x/huggingface/accelerate", {"XDG_CACHE_HOME": "/x"}),
        ("accelerate launch", "/home/u/.cache/huggingface/accelerate", {"HOME": "/home/u"}),
        ("python -m accelerate.commands.launch", "/root/.cache/huggingface/accelerate", {}),
    ],
)
def test_the_default_file_is_found(command: str, path: str, env: dict[str, str]) -> None:
    """Where accelerate looks for it."""
    reading = _mounted(f"{command} {HF}", ZERO, path=path, **env)

    assert found(reading, STRATEGY) == {STRATEGY: "zero3"}
    assert reading.warnings == ()


@pytest.mark.parametrize("home", ["$HF_HOME", "~/.cache/huggingface", "/root/.cache/huggingface"])
def test_a_default_file_that_the_script_writes_is_read(home: str) -> None:
    """Also where nobody says what `HF_HOME` is."""
    script = f"cat > {home}/accelerate/default_config.yaml <<EOF\n{ZERO}EOF\naccelerate launch {HF}"

    assert found(read_script(script, gpus=4), STRATEGY, DEGREE) == {STRATEGY: "zero3", DEGREE: 4}


def test_trl_reads_the_default_file_too() -> None:
    """`trl sft` starts accelerate."""
    command = "trl sft --model_name_or_path gpt2 --per_device_train_batch_size 1 --max_length 512"
    reading = _mounted(command, ZERO, path="/root/.cache/huggingface/accelerate")

    assert found(reading, STRATEGY, DEGREE) == {STRATEGY: "zero3", DEGREE: 4}


def test_line_ends_that_the_shell_took_are_put_back_and_doubted() -> None:
    """`\\n` outside quotes is an `n`: the file is read as it was meant."""
    text = ZERO.strip().replace("\n", "\\n")
    script = f'echo \\"{text}\\" > $HF_HOME/accelerate/default_config.yaml; accelerate launch {HF}'
    reading = read_script(script, gpus=4)

    assert found(reading, STRATEGY, DEGREE) == {STRATEGY: "zero3", DEGREE: 4}
    assert not reading.is_certain
    assert any("line ends" in warning for warning in reading.warnings)


def test_hybrid_sharding_is_within_a_node() -> None:
    """The shard group is what one pod runs."""
    text = (
        "distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: HYBRID_SHARD}\n"
        "num_machines: 2\nnum_processes: 8\n"
    )

    reading = _mounted(NAMED + HF, text)

    group = "parallelism.shardGroup"
    assert found(reading, DEGREE, group) == {DEGREE: 8, group: 4}


def test_a_device_mesh_is_read() -> None:
    """Context and data parallel sizes of accelerate's own."""
    text = (
        "distributed_type: FSDP\nnum_processes: 4\nparallelism_config:\n"
        "  parallelism_config_dp_shard_size: 2\n  parallelism_config_cp_size: 2\n"
    )

    reading = _mounted(NAMED + HF, text)

    context = "parallelism.contextParallel"
    assert found(reading, DEGREE, context) == {DEGREE: 2, context: 2}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", ReasonCode.DOCUMENT),
        ("[1, 2]", ReasonCode.DOCUMENT),
        ("a: [", ReasonCode.DOCUMENT),
        ("x" * 300_000, ReasonCode.DOCUMENT),
        ("distributed_type: MEGATRON_LM", ReasonCode.UNSUPPORTED),
        ("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 9}", ReasonCode.UNSUPPORTED),
        (
            "distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: /no.json}",
            ReasonCode.UNSUPPORTED,
        ),
        ("distributed_type: MULTI_GPU\nnum_processes: many", ReasonCode.UNSUPPORTED),
        ("distributed_type: MULTI_GPU\nnum_processes: ${N}", ReasonCode.TEMPLATE),
    ],
)
def test_files_that_say_nothing_are_named(text: str, code: str) -> None:
    """Where cards share the work, how is not guessed."""
    reading = _mounted(NAMED + HF, text)

    assert codes(reading) == [code]
    assert reading.spec is None


def test_a_file_in_the_image_matters_only_where_cards_share() -> None:
    """One card alone shares nothing: a doubt. Several: unknown."""
    command = f"accelerate launch --config_file /app/a.yaml {HF}"

    assert read_script(command, gpus=1).spec is not None
    assert not read_script(command, gpus=1).is_certain
    assert codes(read_script(command, gpus=2)) == [ReasonCode.DOCUMENT]
