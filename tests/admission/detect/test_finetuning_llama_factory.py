"""LLaMA-Factory: the Trainer's arguments and its own, from a file and `k=v`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.admission.detect.finetuning import read_with_files
from tests.admission.detect.jobs import codes, found, read_args

BASE = """
model_name_or_path: NousResearch/Llama-2-7b-hf
stage: sft
do_train: true
"""
TRAIN = ("llamafactory-cli", "train", "/config/x.yaml")


def _read(text: str, *flags: str, gpus: int = 1) -> Any:
    return read_with_files(*TRAIN, *flags, files={"x.yaml": BASE + text}, gpus=gpus)


def test_defaults_fill_what_the_file_leaves_out() -> None:
    """LoRA on every linear layer, alpha twice the rank, checkpointing on."""
    reading = _read("bf16: true")

    assert reading.spec is not None
    expected = {
        "input": {"batchSize": 8, "sequenceLength": 2048, "padding": "longest"},
        "adapter": {
            "type": "lora",
            "rank": 8,
            "alpha": 16.0,
            "dropout": 0.0,
            "targetModules": ["all-linear"],
        },
        "training.precision": "bf16",
        "training.gradientCheckpointing": "full",
        "training.gradientAccumulationSteps": 1,
        "objective": "sft",
        "quantization": None,
    }
    assert found(reading, *expected) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "finetuning_type: full\nbf16: true",
            {"adapter": None, "training.precision": "amp-bf16"},
        ),
        ("finetuning_type: full\npure_bf16: true", {"training.precision": "bf16"}),
        ("finetuning_type: full", {"training.precision": "fp32"}),
        ("lora_rank: 64\nlora_target: q_proj,v_proj", {
            "adapter.rank": 64, "adapter.alpha": 128.0,
            "adapter.targetModules": ["q_proj", "v_proj"]}),
        ("use_dora: true", {"adapter.type": "dora"}),
        ("quantization_bit: 4\nbf16: true", {"quantization": {
            "bits": 4, "scheme": "nf4", "doubleQuant": True, "prepare": "none"}}),
        ("quantization_bit: 8\nquantization_method: bitsandbytes", {"quantization.bits": 8}),
        ("stage: dpo", {"objective": "dpo", "model.companions": None}),
        ("stage: dpo\npref_loss: orpo", {"objective": "orpo"}),
        ("stage: rm", {"objective": "reward", "model.numLabels": 1}),
        ("stage: pt", {"objective": "supervised", "input.padding": None}),
        ("stage: dpo\nfinetuning_type: full\nbf16: true", {"model.companions": [
            {"source": "huggingface", "name": "NousResearch/Llama-2-7b-hf", "precision": "fp32"}]}),
        ("packing: true", {"input.padding": None}),
        ("flash_attn: fa2", {"model.attention": "flash_attention_2"}),
        ("flash_attn: auto", {"model.attention": None}),
        ("enable_liger_kernel: true", {"training.kernels": "liger", "training.loss": "fused"}),
        ("use_galore: true\nfinetuning_type: full", {"training.optimizer": {"name": "galore"}}),
        ("disable_gradient_checkpointing: true", {"training.gradientCheckpointing": "none"}),
        ("eval_strategy: steps\nper_device_eval_batch_size: 2", {
            "training.evaluation": {"batchSize": 2}}),
    ],
)  # fmt: skip
def test_keys_of_the_file_are_read(text: str, expected: dict[str, Any]) -> None:
    """Trained weights are fp32 beside bf16 operations, frozen ones bf16."""
    reading = _read(text)

    assert reading.spec is not None
    assert found(reading, *expected) == expected


def test_pairs_on_the_command_line_beat_the_file() -> None:
    """`key=value`, as OmegaConf takes it."""
    reading = _read("cutoff_len: 4096", "cutoff_len=1024", "per_device_train_batch_size=2")

    assert found(reading, "input.sequenceLength", "input.batchSize") == {
        "input.sequenceLength": 1024,
        "input.batchSize": 2,
    }


@pytest.mark.parametrize(
    "words",
    [
        ("python", "/app/LLaMA-Factory/src/train.py"),
        ("deepspeed", "--num_gpus=1", "src/train_bash.py"),
        ("python", "src/train.py"),
    ],
)
def test_its_script_is_known_by_its_folder_or_flags(words: tuple[str, ...]) -> None:
    """`--stage` and `--finetuning_type` together are nobody else's."""
    reading = read_args(
        *words, "--stage=sft", "--do_train", "--finetuning_type=lora", "--template=llama2",
        "--model_name_or_path=NousResearch/Llama-2-7b-hf", "--per_device_train_batch_size=4",
        "--lora_target=q_proj",
    )  # fmt: skip

    assert reading.spec is not None
    assert reading.spec.adapter is not None
    assert reading.spec.input.batch_size == 4


def test_its_command_starts_a_process_a_gpu() -> None:
    """With the allocator's segments that grow, and DeepSpeed by the file it brings."""
    reading = _read(
        "finetuning_type: full\nbf16: true\ndeepspeed: examples/deepspeed/ds_z3_config.json",
        gpus=8,
    )

    expected = {
        "parallelism.strategy": "zero3",
        "parallelism.dataParallel": 8,
        "training.precision": "bf16",
        "runtime.env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    }
    assert found(reading, *expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "do_train: false",
        "finetuning_type: freeze",
        "finetuning_type: '{{kind}}'",
        "stage: other",
        "quantization_bit: 4\nquantization_method: hqq",
        "quantization_bit: 3",
        "quantization_bit: many",
        "lora_rank: []\nlora_alpha: none",
        "per_device_train_batch_size: 123456789012345678901234567890",
        "deepspeed: /data/ds.json",
        "cutoff_len: '$LENGTH'",
    ],
)
def test_what_cannot_be_read_is_named(text: str) -> None:
    """Nothing that was told is left out in silence."""
    reading = _read(text)

    assert reading.spec is None
    assert codes(reading)


def test_a_file_that_nobody_sees_is_a_gap() -> None:
    """Its own examples are in the image."""
    reading = read_args("llamafactory-cli", "train", "examples/train_lora/llama3_lora_sft.yaml")

    assert reading.spec is None
    assert codes(reading)
