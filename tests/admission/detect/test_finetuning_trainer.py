"""transformers' Trainer: argument files, adapters, DeepSpeed and FSDP beside its flags."""

from __future__ import annotations

import json
from typing import Any

import pytest

from admission.codes import ReasonCode
from tests.admission.detect.finetuning import read_with_files
from tests.admission.detect.jobs import codes, found, read_args

CLM = ("python", "run_clm.py")
MODEL = "--model_name_or_path=openai-community/gpt2"
MINE = ("torchrun", "--nproc_per_node=4", "finetune.py", MODEL, "--per_device_train_batch_size=2")
ARGUMENTS = {
    "model_name_or_path": "openai-community/gpt2",
    "do_train": True,
    "per_device_train_batch_size": 3,
    "gradient_checkpointing": True,
    "gradient_checkpointing_kwargs": {"use_reentrant": False},
    "optim": "adamw_bnb_8bit",
    "block_size": 256,
}
STAGE_2 = json.dumps(
    {
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
        "bf16": {"enabled": "auto"},
        "train_micro_batch_size_per_gpu": "auto",
    }
)


@pytest.mark.parametrize("name", ["args.json", "args.yaml"])
def test_all_arguments_may_stand_in_a_file(name: str) -> None:
    """`run_clm.py args.json` is the script with the file's keys as flags."""
    reading = read_with_files(*CLM, f"/config/{name}", files={name: json.dumps(ARGUMENTS)})

    assert reading.spec is not None
    assert found(
        reading,
        "model.name",
        "input.batchSize",
        "input.sequenceLength",
        "training.gradientCheckpointing",
        "training.optimizer",
    ) == {
        "model.name": "openai-community/gpt2",
        "input.batchSize": 3,
        "input.sequenceLength": 256,
        "training.gradientCheckpointing": {"mode": "full", "reentrant": False},
        "training.optimizer": {"name": "adamw", "bits": 8},
    }
    source = f"configmap tune/{name} per_device_train_batch_size"
    assert reading.sources["input.batchSize"] == source


def test_a_file_of_arguments_that_is_not_seen_is_a_gap() -> None:
    """Everything may be in it."""
    reading = read_args(*CLM, "/data/args.json")

    assert reading.spec is None
    assert ReasonCode.DOCUMENT in codes(reading)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (
            ("--use_peft", "--lora_r=8", "--lora_target_modules", "q_proj", "v_proj"),
            {
                "adapter.type": "lora",
                "adapter.rank": 8,
                "adapter.alpha": 32.0,
                "adapter.targetModules": ["q_proj", "v_proj"],
            },
        ),
        (
            ("--use_peft", "--use_dora", "--lora_target_modules=all-linear"),
            {"adapter.type": "dora", "adapter.rank": 16, "adapter.targetModules": ["all-linear"]},
        ),
        (
            ("--load_in_4bit", "--bnb_4bit_quant_type=fp4", "--use_bnb_nested_quant"),
            {"quantization": {"bits": 4, "scheme": "fp4", "doubleQuant": True}},
        ),
        (("--load_in_8bit=True",), {"quantization": {"bits": 8, "scheme": "int8"}}),
        (("--load_in_8bit=False",), {"quantization": None}),
        (("--attn_implementation", "flash_attention_3"), {"model.attention": "flash_attention_2"}),
        (("--fp16", "--max_grad_norm=0"), {"training.clipGradNorm": False}),
    ],
)
def test_adapters_and_bits_are_read(flags: tuple[str, ...], expected: dict[str, Any]) -> None:
    """By TRL's names for them, which other scripts take over."""
    assert found(read_args(*MINE, *flags), *expected) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (
            ("--deepspeed", "/config/ds.json"),
            {
                "parallelism.strategy": "zero2",
                "parallelism.offload": "optimizer",
                "parallelism.dataParallel": 4,
                "training.precision": "fp32",
                "training.masterWeights": None,
            },
        ),
        (
            ("--deepspeed", "/config/ds.json", "--bf16", "--torch_dtype=float32"),
            {"training.precision": "bf16", "training.masterWeights": True, "input.batchSize": 2},
        ),
        (
            ("--fsdp", "full_shard auto_wrap"),
            {"parallelism.strategy": "fsdp", "parallelism.dataParallel": 4},
        ),
        (
            ("--fsdp", "shard_grad_op offload", "--fsdp_config=/config/fsdp.json"),
            {
                "parallelism.reshardAfterForward": False,
                "parallelism.offload": "parameters",
                "parallelism.implementation": "fsdp2",
                "training.gradientCheckpointing": "full",
            },
        ),
        (
            ("--fsdp", "full_shard", "--fsdp_config", '{"min_num_params": 20000}'),
            {"parallelism.wrap": "size"},
        ),
        (("--fsdp", "no_shard"), {"parallelism.strategy": "ddp"}),
        (("--fsdp", ""), {"parallelism.strategy": "ddp"}),
    ],
)
def test_sharding_is_read_from_its_files(flags: tuple[str, ...], expected: dict[str, Any]) -> None:
    """DeepSpeed's JSON leaves the dtype to `--bf16`, FSDP's has its keys with a prefix or not."""
    files = {
        "ds.json": STAGE_2,
        "fsdp.json": '{"version": 2, "activation_checkpointing": true}',
    }
    precise = () if "--torch_dtype=float32" in flags else ("--torch_dtype=float32",)

    reading = read_with_files(*MINE, *precise, *flags, files=files, gpus=4)

    assert found(reading, *expected) == expected


def test_deepspeed_may_stand_in_the_file_of_arguments() -> None:
    """A mapping in the place of a file's name is the configuration itself."""
    text = json.dumps({**ARGUMENTS, "deepspeed": {"zero_optimization": {"stage": 3}}})

    reading = read_with_files(
        "torchrun", "--nproc_per_node=2", "run_clm.py", "/config/a.json",
        files={"a.json": text}, gpus=2,
    )  # fmt: skip

    assert found(reading, "parallelism.strategy") == {"parallelism.strategy": "zero3"}


@pytest.mark.parametrize(
    "flags",
    [
        ("--deepspeed", "/config/none.json"),
        ("--deepspeed", "$DS"),
        ("--fsdp", "full_shard", "--fsdp_config=/config/none.json"),
        ("--fsdp", "hybrid_shard auto_wrap"),
        ("--fsdp", "${MODE}"),
    ],
)
def test_sharding_that_is_not_seen_is_a_gap(flags: tuple[str, ...]) -> None:
    """Named, and closed by the owner's strategy."""
    reading = read_with_files(*MINE, "--torch_dtype=float32", *flags, files={}, gpus=4)

    assert reading.spec is None
    assert reading.unknowns


@pytest.mark.parametrize(
    "flags",
    [
        ("--use_peft", "--lora_r=many"),
        ("--use_peft", "--lora_alpha", "{{alpha}}"),
        ("--use_peft", "--lora_dropout=7"),
        ("--use_peft", "--lora_target_modules", "$MODULES"),
        ("--load_in_4bit", "--bnb_4bit_quant_type", "$KIND"),
        ("--attn_implementation", "mine"),
    ],
)
def test_parts_that_cannot_be_read_are_gaps(flags: tuple[str, ...]) -> None:
    """A method whose extent is not known is no method without it."""
    reading = read_args(*MINE[2:], "--torch_dtype=float32", *flags)

    assert reading.spec is None
    assert reading.unknowns


def test_a_teacher_is_a_frozen_model_beside() -> None:
    """Its weights are on the card too; that the script is no library's own is said."""
    reading = read_args(*MINE[2:], "--torch_dtype=float32", "--teacher_model=org/big")

    assert reading.partial["model"]["companions"] == [{"source": "huggingface", "name": "org/big"}]
    assert not reading.is_certain


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ("--use_deepspeed", "--zero_stage=2"),
            {"training.precision": "bf16", "training.masterWeights": True},
        ),
        (
            ("--use_fsdp", "--fsdp_sharding_strategy=FULL_SHARD"),
            {
                "training.precision": "amp-bf16",
                "parallelism.mixedPrecision": {"param": "bf16", "reduce": "bf16"},
            },
        ),
        (("--multi_gpu",), {"training.precision": "amp-bf16", "training.masterWeights": None}),
    ],
)
def test_mixed_precision_is_the_sharders_own(words: tuple[str, ...], expected: Any) -> None:
    """DeepSpeed holds 16 bits beside an fp32 copy, FSDP computes in them on fp32 shards."""
    script = ("run_clm.py", "--do_train", MODEL, "--bf16", "--dtype=float32")

    reading = read_args("accelerate", "launch", *words, *script, gpus=2)

    assert found(reading, *expected) == expected


def test_a_script_that_is_not_known_keeps_its_own_defaults() -> None:
    """What its flags do not say, and an example of the library would take, is left out."""
    words = ("python", "finetune.py", "--model_name_or_path=NousResearch/Llama-2-7b-hf",
             "--per_device_train_batch_size=2")  # fmt: skip
    paths = ("training.optimizer", "training.gradientAccumulationSteps", "training.precision")

    silent, told = read_args(*words), read_args(*words, "--bf16", "--optim=adafactor")

    assert silent.spec is not None
    assert found(silent, *paths) == dict.fromkeys(paths)
    assert found(told, "training.optimizer") == {"training.optimizer": {"name": "adafactor"}}
