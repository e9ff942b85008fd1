"""axolotl: one YAML file, keys on the command line over it."""

from __future__ import annotations

from typing import Any

import pytest

from admission.codes import ReasonCode
from tests.admission.detect.finetuning import read_with_files
from tests.admission.detect.jobs import codes, found, read_args

BASE = "base_model: NousResearch/Llama-2-7b-hf\n"
TRAIN = ("axolotl", "train", "/config/x.yml")


def _read(text: str, *flags: str, gpus: int = 1, train: tuple[str, ...] = TRAIN) -> Any:
    return read_with_files(*train, *flags, files={"x.yml": BASE + text}, gpus=gpus)


@pytest.mark.parametrize(
    "train",
    [
        TRAIN,
        ("python", "-m", "axolotl.cli.train", "/config/x.yml"),
        ("accelerate", "launch", "-m", "axolotl.cli.train", "/config/x.yml"),
    ],
)
def test_defaults_fill_what_the_file_leaves_out(train: tuple[str, ...]) -> None:
    """`bf16: auto` is bf16, lengths are padded to the longest unless packed."""
    reading = _read("", train=train)

    assert reading.spec is not None
    expected = {
        "model.name": "NousResearch/Llama-2-7b-hf",
        "input": {"batchSize": 1, "sequenceLength": 512, "padding": "longest"},
        "training.precision": "bf16",
        "training.optimizer": {"name": "adamw", "fused": True},
        "training.gradientCheckpointing": "none",
        "objective": "sft",
        "adapter": None,
    }
    assert found(reading, *expected) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "adapter: qlora\nload_in_4bit: true\nlora_r: 16\nlora_alpha: 32\n"
            "lora_target_linear: true",
            {
                "adapter": {
                    "type": "lora",
                    "rank": 16,
                    "alpha": 32.0,
                    "dropout": 0.0,
                    "targetModules": ["all-linear"],
                },
                "quantization": {
                    "bits": 4,
                    "scheme": "nf4",
                    "doubleQuant": True,
                    "prepare": "castBack",
                },
            },
        ),
        (
            "adapter: lora\nload_in_8bit: true\nlora_r: 8\nlora_target_modules: [q_proj, v_proj]",
            {
                "adapter.targetModules": ["q_proj", "v_proj"],
                "quantization": {"bits": 8, "scheme": "int8", "prepare": "castBack"},
            },
        ),
        ("adapter:\nload_in_8bit: true", {"adapter": None, "quantization": None}),
        (
            "adapter: lora\nlora_r: 8\nlora_target_modules: 'layers.[0-9]{1,2}.(q|k)_proj'",
            {"adapter.targetModules": ["layers.[0-9]{1,2}.(q|k)_proj"]},
        ),
        ("sample_packing: true\nsequence_len: 2048", {
            "input": {"batchSize": 1, "sequenceLength": 2048}}),
        ("micro_batch_size: 2\nbatch_size: 8", {"training.gradientAccumulationSteps": 4}),
        ("fp16: true\nbf16: false", {"training.precision": "fp16"}),
        ("fp16: true", {"training.precision": "fp16"}),
        ("bf16: false\ntf32: true", {"training.precision": "tf32"}),
        ("bf16: false", {"training.precision": "fp32"}),
        (
            "gradient_checkpointing: offload",
            {"training.gradientCheckpointing": "full", "training.activationOffload": True},
        ),
        (
            "gradient_checkpointing: true\ngradient_checkpointing_kwargs: {use_reentrant: false}",
            {"training.gradientCheckpointing": {"mode": "full", "reentrant": False}},
        ),
        ("flash_attention: true", {"model.attention": "flash_attention_2"}),
        ("attn_implementation: sdpa", {"model.attention": "sdpa"}),
        ("optimizer: adamw_bnb_8bit", {"training.optimizer": {"name": "adamw", "bits": 8}}),
        ("val_set_size: 0.05", {"training.evaluation": {"batchSize": 1}}),
        ("image_size: 512", {"input.imageSize": [3, 512, 512]}),
        ("liger_fused_linear_cross_entropy: true\nliger_rms_norm: true", {
            "training.loss": "fused", "training.kernels": "liger"}),
        ("reward_model: true", {"objective": "reward"}),
        ("rl: orpo", {"objective": "orpo", "model.companions": None}),
        ("rl: dpo\nadapter: lora\nlora_r: 8", {"objective": "dpo", "model.companions": None}),
        ("rl: ipo", {"objective": "dpo", "model.companions": [
            {"source": "huggingface", "name": "NousResearch/Llama-2-7b-hf", "precision": "bf16"}]}),
    ],
)  # fmt: skip
def test_keys_of_the_file_are_read(text: str, expected: dict[str, Any]) -> None:
    """Each by axolotl's own meaning."""
    reading = _read(text)

    assert reading.spec is not None
    assert found(reading, *expected) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json",
            {"parallelism.strategy": "zero3", "parallelism.offload": "parameters"},
        ),
        ("deepspeed: /config/ds.json", {"parallelism.strategy": "zero1"}),
        (
            "fsdp: [full_shard, auto_wrap]\nfsdp_config:\n  fsdp_offload_params: true",
            {"parallelism.strategy": "fsdp", "parallelism.offload": "parameters"},
        ),
        (
            "fsdp_version: 2\nfsdp_config: {reshard_after_forward: false}",
            {
                "parallelism.strategy": "fsdp",
                "parallelism.implementation": "fsdp2",
                "parallelism.reshardAfterForward": False,
            },
        ),
        ("", {"parallelism.strategy": "ddp"}),
    ],
)
def test_the_cards_share_as_the_file_says(text: str, expected: dict[str, Any]) -> None:
    """DeepSpeed's files that axolotl brings are known by their names."""
    ds = '{"zero_optimization": {"stage": 1}}'
    reading = read_with_files(*TRAIN, files={"x.yml": BASE + text, "ds.json": ds}, gpus=4)

    assert reading.spec is not None
    assert found(reading, *expected) == expected
    assert reading.spec.parallelism.data_parallel == 4


def test_the_command_line_beats_the_file() -> None:
    """With `-` or `_` between the words."""
    reading = _read("micro_batch_size: 8", "--micro-batch-size=2", "--sequence_len", "1024")

    assert reading.sources["input.batchSize"] == "containers[0].args --micro-batch-size"
    assert found(reading, "input.batchSize", "input.sequenceLength") == {
        "input.batchSize": 2,
        "input.sequenceLength": 1024,
    }


def test_one_process_spreads_layers_over_all_cards() -> None:
    """Without a launcher the model is put on every card the process sees."""
    reading = _read("", gpus=4, train=("python", "-m", "axolotl.cli.train", "/config/x.yml"))

    assert found(reading, "parallelism.deviceMap", "parallelism.strategy") == {
        "parallelism.deviceMap": "auto",
        "parallelism.strategy": "none",
    }


@pytest.mark.parametrize(
    "text",
    [
        "micro_batch_size: {{batch}}",
        "micro_batch_size: '{{batch}}'",
        "micro_batch_size: [1, 2",
        "micro_batch_size: -3",
        "micro_batch_size: 1.5e30",
        "sequence_len: {a: 1}\nmicro_batch_size: many",
        "unfrozen_parameters: [lm_head]",
        "adapter: llama-adapter",
        "rl: simpo",
        "deepspeed: /data/mine.json",
        "- a list",
    ],
)
def test_what_cannot_be_read_is_named(text: str) -> None:
    """A value that is needed and not known is never guessed."""
    reading = _read(text)

    assert reading.spec is None
    assert codes(reading)


@pytest.mark.parametrize("text", ["micro_batch_size:", "sequence_len: null", "lora_r: null"])
def test_null_is_the_default(text: str) -> None:
    """A key without a value says nothing; what has no other default is not made up."""
    assert _read(text).partial["model"]["name"] == "NousResearch/Llama-2-7b-hf"


def test_a_file_that_nobody_sees_is_a_gap() -> None:
    """In the image, on a volume, or on the web."""
    for path in ("examples/llama-3/lora-1b.yml", "https://example.com/x.yml", "/data/x.yml"):
        reading = read_args("axolotl", "train", path)

        assert reading.spec is None
        assert codes(reading) == [ReasonCode.DOCUMENT]


def test_a_file_that_nobody_sees_leaves_no_default() -> None:
    """It may say anything: only the command line's own words count."""
    reading = read_args("axolotl", "train", "/data/x.yml", "--micro_batch_size=2", gpus=4)

    expected = {
        "input": {"batchSize": 2},
        "training.precision": None,
        "training.optimizer": None,
        "objective": None,
        "parallelism": None,
    }
    assert found(reading, *expected) == expected
