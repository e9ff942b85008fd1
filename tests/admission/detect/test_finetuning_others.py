"""Programs for language models with a way of their own: Meta's, IBM's, KAITO's, workflows'."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.admission.detect.finetuning import read_with_files
from tests.admission.detect.jobs import codes, found, read_args

LLAMA = "NousResearch/Llama-2-7b-hf"
RECIPES = ("torchrun", "--nproc_per_node=4", "-m", "llama_recipes.finetuning",
           f"--model_name={LLAMA}")  # fmt: skip
KAITO = ("python", "-m", "kaito.tuning")
TEXT = ("deepspeed", "--num_gpus=2", "/app/finetuner.py", "--run-name=a", "--context-size=1024")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), {"input.batchSize": 4, "input.sequenceLength": 4096, "adapter": None,
              "training.optimizer": {"name": "adamw"}, "training.evaluation": {"batchSize": 1}}),
        (
            ("--enable_fsdp", "--batch_size_training=1", "--context_length", "2048"),
            {
                "input.batchSize": 1,
                "input.sequenceLength": 2048,
                "parallelism.strategy": "fsdp",
                "parallelism.mixedPrecision": {"param": "bf16", "reduce": "bf16"},
                "training.gradientCheckpointing": "full",
            },
        ),
        (
            ("--enable_fsdp", "--pure_bf16", "--optimizer", "anyprecision"),
            {
                "training.precision": "bf16",
                "parallelism.mixedPrecision": None,
                "training.optimizer": {"name": "adamw_anyprecision"},
            },
        ),
        (
            ("--use_peft", "--peft_method", "lora", "--quantization", "4bit", "--lora_config.r=16"),
            {
                "adapter": {"type": "lora", "rank": 16, "alpha": 32.0, "dropout": 0.05,
                            "targetModules": ["q_proj", "v_proj"]},
                "quantization": {"bits": 4, "scheme": "fp4", "doubleQuant": False},
            },
        ),
        (("--quantization",), {"quantization.bits": 8}),
        (("--enable_fsdp", "--sharding_strategy=ShardingStrategy.NO_SHARD"),
         {"parallelism.strategy": "ddp"}),
        (("--use_fp16",), {"training.precision": "fp16"}),
    ],
)  # fmt: skip
def test_llama_recipes(flags: tuple[str, ...], expected: dict[str, Any]) -> None:
    """python-fire's flags over its dataclasses."""
    reading = read_args(*RECIPES, *flags, gpus=4)

    assert reading.spec is not None
    assert found(reading, *expected) == expected


@pytest.mark.parametrize(
    "flags",
    [
        ("--batching_strategy", "padding"),
        ("--use_peft", "--peft_method=llama_adapter"),
        ("--freeze_layers",),
        ("--quantization=int4",),
        ("--batch_size_training=$B",),
        ("--enable_fsdp", "--sharding_strategy=HYBRID_SHARD"),
    ],
)
def test_llama_recipes_that_cannot_be_read(flags: tuple[str, ...]) -> None:
    """Frozen layers and lengths that the data decides are named."""
    reading = read_args(*RECIPES, *flags, gpus=4)

    assert reading.spec is None
    assert codes(reading)


JSON = {"model_name_or_path": "bigscience/bloom-560m", "per_device_train_batch_size": 4}
PATH = {"SFT_TRAINER_CONFIG_JSON_PATH": "/config/config.json"}


def _encoded(document: object) -> dict[str, object]:
    text = base64.b64encode(json.dumps(document).encode()).decode()
    return {"SFT_TRAINER_CONFIG_JSON_ENV_VAR": text}


@pytest.mark.parametrize("env", [PATH, _encoded(JSON)])
@pytest.mark.parametrize("argv", [(), ("python", "/app/accelerate_launch.py")])
def test_the_json_of_fms_tuning_comes_from_a_variable(
    env: dict[str, object], argv: tuple[str, ...]
) -> None:
    """Its path, or itself in base64; the image starts its launcher where nothing else is said."""
    reading = read_with_files(*argv, files={"config.json": json.dumps(JSON)}, gpus=2, env=env)

    assert reading.spec is not None
    expected = {
        "model.name": "bigscience/bloom-560m",
        "model.attention": "flash_attention_2",
        "input": {"batchSize": 4, "sequenceLength": 4096, "padding": "longest"},
        "training.precision": "bf16",
        "parallelism.strategy": "fsdp",
        "parallelism.dataParallel": 2,
        "adapter": None,
    }
    assert found(reading, *expected) == expected
    assert reading.is_certain


def test_a_broken_json_is_read_key_by_key() -> None:
    """With a warning that the job itself will fail on it; nobody is refused on such a reading."""
    text = (
        '{\n "model_name_or_path": "bigscience/bloom-560m"\n "per_device_train_batch_size": 4,\n}'
    )

    reading = read_with_files(files={"config.json": text}, env=PATH)

    assert reading.spec is not None
    assert not reading.is_certain
    assert any("no valid JSON" in warning for warning in reading.warnings)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"peft_method": "lora", "r": 4, "target_modules": ["all-linear"]},
         {"adapter.rank": 4, "adapter.alpha": 32.0, "adapter.targetModules": ["all-linear"]}),
        ({"peft_method": "pt"}, {"adapter": {"type": "prompt_tuning", "virtualTokens": 8}}),
        ({"peft_method": "lora", "bitsandbytes": ["nf4", True]}, {"quantization.scheme": "nf4"}),
        ({"packing": True, "torch_dtype": "float32"},
         {"input.padding": None, "training.precision": "fp32"}),
    ],
)  # fmt: skip
def test_methods_of_fms_tuning(more: dict[str, object], expected: dict[str, Any]) -> None:
    """One card: nothing is shared."""
    reading = read_with_files(files={"config.json": json.dumps({**JSON, **more})}, env=PATH)

    assert reading.spec is not None
    assert found(reading, *expected) == expected
    assert found(reading, "parallelism") == {"parallelism": {"strategy": "none"}}


@pytest.mark.parametrize(
    "env",
    [
        {"SFT_TRAINER_CONFIG_JSON_PATH": "/data/config.json"},
        {"SFT_TRAINER_CONFIG_JSON_PATH": "${PATH_OF_IT}"},
        {"SFT_TRAINER_CONFIG_JSON_ENV_VAR": base64.b64encode(b"\x80\x04\x95").decode()},
        {"SFT_TRAINER_CONFIG_JSON_ENV_VAR": "no base64 at all!"},
        _encoded([1, 2]),
        _encoded({"per_device_train_batch_size": 4}),
        {"OTHER": "x"},
    ],
)
def test_fms_tuning_without_a_json_is_unknown(env: dict[str, object]) -> None:
    """A pickle is never opened."""
    reading = read_with_files("python", "/app/accelerate_launch.py", files={}, env=env)

    assert reading.spec is None
    assert codes(reading)


def test_unsloth_trains_an_adapter() -> None:
    """On seven projections, checkpointed to the host; its patches make it a doubt."""
    reading = read_args("python", "unsloth-cli.py", "--load_in_4bit", "--r=32")

    assert reading.spec is not None
    assert not reading.is_certain
    expected = {
        "model.name": "unsloth/llama-3-8b",
        "input.batchSize": 2,
        "adapter.rank": 32,
        "adapter.alpha": 16.0,
        "quantization.bits": 4,
        "training.optimizer": {"name": "adamw", "bits": 8},
        "training.activationOffload": True,
    }
    assert found(reading, *expected) == expected
    assert len(reading.partial["adapter"]["targetModules"]) == 7


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--preset=phi-4", "--method=lora"), {
            "model.name": "microsoft/phi-4", "input.batchSize": 1, "quantization": None,
            "adapter": {"type": "lora", "rank": 8, "alpha": 8.0, "dropout": 0.0}}),
        (("--preset=phi-3-mini-4k-instruct", "--method=qlora"), {
            "quantization": {"bits": 4, "scheme": "nf4", "computeDtype": "bf16",
                             "doubleQuant": True, "prepare": "kbit"},
            "training.precision": "bf16"}),
        (("--preset=phi-4", "--method=qlora", "--config=/config/training_config.yaml"), {
            "input.batchSize": 2, "adapter.rank": 16, "adapter.targetModules": ["q_proj"],
            "quantization": None, "training.gradientCheckpointing": "full"}),
    ],
)  # fmt: skip
def test_kaito(flags: tuple[str, ...], expected: dict[str, Any]) -> None:
    """A preset is a Hub id; a configuration that is named takes the place of KAITO's own."""
    text = """
    training_config:
      ModelConfig: {torch_dtype: bfloat16}
      LoraConfig: {r: 16, target_modules: [q_proj]}
      TrainingArguments: {per_device_train_batch_size: 2, gradient_checkpointing: true}
    """

    reading = read_with_files(*KAITO, *flags, files={"training_config.yaml": text})

    assert reading.spec is not None
    assert found(reading, *expected) == expected


@pytest.mark.parametrize(
    "flags",
    [(), ("--preset=mine",), ("--preset={{p}}",), ("--preset=phi-4", "--config=/data/x.yaml")],
)
def test_kaito_that_cannot_be_read(flags: tuple[str, ...]) -> None:
    """Presets of others are not guessed."""
    reading = read_args(*KAITO, *flags)

    assert reading.spec is None
    assert codes(reading)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--model=/pvc/models/EleutherAI/pythia-160m", "--bs=2", "--gradients=3"), {
            "model.name": "EleutherAI/pythia-160m", "input.batchSize": 2,
            "training.gradientAccumulationSteps": 3, "parallelism.strategy": "zero3"}),
        (("--model=EleutherAI/pythia-160m", "--bs=1", "--zero-stage=0", "--fp16=true"), {
            "parallelism.strategy": "ddp", "training.precision": "fp16"}),
    ],
)  # fmt: skip
def test_the_finetuner_of_a_workflow(flags: tuple[str, ...], expected: dict[str, Any]) -> None:
    """The path its workflow stores a model under ends with the Hub id."""
    reading = read_args(*TEXT, *flags, gpus=2)

    assert reading.spec is not None
    assert found(reading, *expected) == expected


@pytest.mark.parametrize(
    "flags",
    [
        ("--model=EleutherAI/pythia-160m", "--bs=-1"),
        ("--model=EleutherAI/pythia-160m",),
        ("--model=/pvc/mine", "--bs=2"),
        ("--model=EleutherAI/pythia-160m", "--bs=2", "--zero-stage=9"),
        ("--model=/pvc/models/{{model}}", "--bs=2"),
    ],
)
def test_a_batch_that_fits_itself_is_unknown(flags: tuple[str, ...]) -> None:
    """Minus one, also where nobody says anything: the trainer looks at the card."""
    reading = read_args(*TEXT, *flags, gpus=2)

    assert reading.spec is None
    assert codes(reading)


def test_distillation_has_two_models() -> None:
    """The student is trained, the teacher is a companion."""
    words = (
        "accelerate",
        "launch",
        "--multi_gpu",
        "--mixed_precision=bf16",
        "distil_logits_cli.py",
    )

    reading = read_args(
        *words, "--teacher_model=org/big", "--student_model=org/small",
        "--per_device_train_batch_size=2", gpus=2,
    )  # fmt: skip

    assert reading.spec is not None
    assert found(reading, "model.name", "model.companions", "objective") == {
        "model.name": "org/small",
        "model.companions": [{"source": "huggingface", "name": "org/big", "precision": "fp32"}],
        "objective": "distill",
    }


def test_a_student_that_is_not_rendered_is_unknown() -> None:
    """Nor is the batch taken from a copy of the script that nobody sees."""
    reading = read_args(
        "python", "distil_logits_cli.py", "--teacher_model=$T", "--student_model=$S"
    )

    assert reading.spec is None
    assert found(reading, "model.name", "input.batchSize") == {
        "model.name": None, "input.batchSize": None}  # fmt: skip
