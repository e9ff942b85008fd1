"""TRL: its command, its scripts, its YAML file, and what it took by default in which release."""

from __future__ import annotations

from typing import Any

import pytest

from admission.values import Document
from tests.admission.detect.finetuning import read_with_files
from tests.admission.detect.jobs import codes, container, found, job, read, read_args, read_script

MODEL = "--model_name_or_path=openai-community/gpt2"
SFT = ("trl", "sft", MODEL, "--dataset_name=org/rows")
SCRIPT = ("python", "trl/scripts/dpo.py", MODEL, "--dataset_name=org/rows")
PRECISION = "training.precision"
CHECKPOINTING = "training.gradientCheckpointing"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("", {PRECISION: "amp-bf16", CHECKPOINTING: "full", "training.loss": "chunked"}),
        ("1.5.0", {PRECISION: "amp-bf16", CHECKPOINTING: "full", "training.loss": None}),
        ("0.21.0", {CHECKPOINTING: "none"}),
        ("0.18.0", {PRECISION: "fp32", CHECKPOINTING: "none"}),
    ],
)
def test_defaults_are_those_of_the_release(version: str, expected: dict[str, Any]) -> None:
    """bf16 since 0.19, checkpointing since 0.22, a loss without all logits since 1.6."""
    pin = f"pip install trl=={version} transformers==4.50.0; " if version else ""

    reading = read_script(f"{pin}{' '.join(SFT)}")

    assert reading.spec is not None
    assert found(reading, *expected) == expected
    assert reading.spec.input.batch_size == 8
    assert reading.spec.input.sequence_length == 1024


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("--max_seq_length=512", {CHECKPOINTING: "none", "input.sequenceLength": 512}),
        ("--torch_dtype=bfloat16", {CHECKPOINTING: "full", PRECISION: "bf16"}),
        ("--dtype=bfloat16", {CHECKPOINTING: "full", PRECISION: "bf16"}),
        ("--fp16", {PRECISION: "amp-fp16"}),
        ("--packing", {"input.padding": None}),
        ("--packing=False", {"input.padding": "longest"}),
        ("--use_liger_kernel", {"training.kernels": "liger", "training.loss": "fused"}),
    ],
)
def test_flags_of_older_releases_tell_the_release(flag: str, expected: dict[str, Any]) -> None:
    """`max_seq_length` went with 0.20, `torch_dtype` with 0.27."""
    assert found(read_args(*SFT, flag), *expected) == expected


@pytest.mark.parametrize(
    ("words", "objective"),
    [
        (("trl", "dpo"), "dpo"),
        (("trl", "kto"), "kto"),
        (("trl", "grpo"), "grpo"),
        (("trl", "reward"), "reward"),
        (("python", "/trl/examples/scripts/orpo.py"), "orpo"),
        (("accelerate", "launch", "trl/scripts/sft.py"), "sft"),
        (("python", "trl/examples/scripts/reward_modeling.py"), "reward"),
    ],
)
def test_the_subcommand_is_the_objective(words: tuple[str, ...], objective: str) -> None:
    """However the script is started."""
    reading = read_args(*words, MODEL, "--dataset_name=org/rows")

    assert reading.spec is not None
    assert reading.spec.objective == objective


def test_a_file_lies_under_the_command_line() -> None:
    """`--config x.yaml`: its keys are the script's flags."""
    text = """
    model_name_or_path: openai-community/gpt2
    dataset_name: org/rows
    per_device_train_batch_size: 4
    use_peft: true
    lora_r: 32
    lora_target_modules: [c_attn]
    load_in_4bit: true
    """

    reading = read_with_files(
        "trl", "sft", "--config", "/config/x.yaml", "--lora_r=8", files={"x.yaml": text}
    )

    assert reading.spec is not None
    expected = {
        "input.batchSize": 4,
        "adapter": {
            "type": "lora",
            "rank": 8,
            "alpha": 32.0,
            "dropout": 0.05,
            "targetModules": ["c_attn"],
        },
        "quantization": {
            "bits": 4,
            "scheme": "nf4",
            "computeDtype": "fp32",
            "doubleQuant": False,
            "prepare": "none",
        },
    }
    assert found(reading, *expected) == expected
    assert reading.sources["input.batchSize"] == "configmap tune/x.yaml per_device_train_batch_size"


def test_older_releases_prepare_a_quantised_base() -> None:
    """peft's prepare_model_for_kbit_training was called before 0.27."""
    script = f"pip install trl==0.20.0; {' '.join(SFT)} --use_peft --load_in_8bit"

    assert found(read_script(script), "quantization.prepare") == {"quantization.prepare": "kbit"}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("trl", "dpo"), ["openai-community/gpt2"]),
        (("trl", "dpo", "--use_peft"), None),
        (("trl", "dpo", "--precompute_ref_log_probs"), None),
        (("python", "/trl/examples/scripts/orpo.py"), None),
        (("trl", "grpo"), None),
        (("trl", "grpo", "--beta=0.1"), ["openai-community/gpt2"]),
        (
            ("python", "trl/examples/scripts/gkd.py", "--teacher_model_name_or_path=org/big"),
            ["org/big"],
        ),
    ],
)
def test_frozen_models_are_beside_the_trained_one(
    words: tuple[str, ...], names: list[str] | None
) -> None:
    """A reference, unless an adapter can be switched off or its figures are made before."""
    companions = (
        read_args(*words, MODEL, "--dataset_name=org/rows").partial["model"].get("companions")
    )

    assert (companions and [item["name"] for item in companions]) == names


def test_generated_text_counts_as_length() -> None:
    """GRPO's prompt and completion together, where the release bounds the prompt."""
    old = read_args("trl", "grpo", MODEL, "--max_prompt_length=300", "--max_completion_length=100")
    new = read_args("trl", "grpo", MODEL)

    assert old.partial["input"]["sequenceLength"] == 300 + 100
    assert "sequenceLength" not in new.partial["input"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (
            ("--accelerate_config", "zero3", "--num_processes=4"),
            {"parallelism.strategy": "zero3", "parallelism.dataParallel": 4},
        ),
        (
            ("--accelerate_config=fsdp2",),
            {
                "parallelism.strategy": "fsdp",
                "parallelism.implementation": "fsdp2",
                "parallelism.dataParallel": 8,
            },
        ),
        (("--accelerate_config=single_gpu",), {"parallelism.strategy": "none"}),
        ((), {"parallelism.strategy": "ddp", "parallelism.dataParallel": 8}),
    ],
)
def test_configurations_that_trl_brings_are_known(
    flags: tuple[str, ...], expected: dict[str, Any]
) -> None:
    """They say eight processes where nobody says another number."""
    assert found(read_args(*SFT, *flags, gpus=8), *expected) == expected


@pytest.mark.parametrize(
    "words",
    [
        ("trl", "rloo", MODEL),
        ("trl", "sft", MODEL, "--accelerate_config=/data/mine.yaml"),
        ("trl", "grpo", MODEL, "--use_vllm"),
        ("trl", "sft", "--config=/data/x.yaml"),
        ("trl", "sft", "--model_name_or_path=/models/mine"),
        ("trl", "sft", "--model_name_or_path={{model}}"),
        ("trl", "sft", MODEL, "--dtype={{dtype}}"),
        ("trl", "sft", MODEL, "--max_length=99999999999999999999"),
    ],
)
def test_what_cannot_be_read_is_named(words: tuple[str, ...]) -> None:
    """Every reason comes with what would have let us read it."""
    reading = read_args(*words)

    assert reading.spec is None
    assert codes(reading)
    assert all(finding.hint for finding in reading.unknowns)


def test_a_script_of_that_name_elsewhere_is_not_certain() -> None:
    """`sft.py` may be anybody's."""
    reading = read_args("python", "/work/sft.py", MODEL, "--dataset_name=org/rows")

    assert reading.spec is not None
    assert not reading.is_certain


def test_its_file_may_tell_the_processes() -> None:
    """What its scripts do not know of the file goes to accelerate."""
    text = "model_name_or_path: openai-community/gpt2\ndataset_name: a/b\nnum_processes: 2\n"

    reading = read_with_files(
        "trl", "sft", "--config=/config/x.yaml", files={"x.yaml": text}, gpus=4
    )

    assert reading.spec is not None
    assert found(reading, "parallelism.strategy", "parallelism.dataParallel") == {
        "parallelism.strategy": "ddp",
        "parallelism.dataParallel": 2,
    }


def test_one_process_spreads_layers_over_all_cards() -> None:
    """Since 0.26; before, the Trainer copies the model to each card."""
    words = ("python", "trl/scripts/sft.py", MODEL, "--dataset_name=org/rows")

    new, old = read_args(*words, gpus=2), read_args(*words, "--max_seq_length=9", gpus=2)

    assert found(new, "parallelism.deviceMap", "parallelism.strategy") == {
        "parallelism.deviceMap": "auto",
        "parallelism.strategy": "none",
    }
    assert found(old, "parallelism.strategy") == {"parallelism.strategy": "dp"}


def test_the_hubs_own_files_tell_the_stored_dtype() -> None:
    """A model that the catalog lacks, once its configuration was fetched."""
    words = ("trl", "sft", "--model_name_or_path=org/new", "--dtype=auto", "--dataset_name=a/b")
    config = '{"model_type": "llama", "torch_dtype": "bfloat16"}'
    document = Document(files={"config.json": config})

    reading = read(job(container(*words)), documents={"hf://org/new@main": document})

    assert found(reading, "training.precision") == {"training.precision": "bf16"}
