"""A Python script that is seen is read by the literals it gives transformers."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from admission.codes import ReasonCode
from admission.values import Reading
from tests.admission.detect.jobs import codes, found, read_script, read_with_files

MODEL, BATCH = "model.name", "input.batchSize"
TRAINER = """
    import os
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    NAME = os.environ.get("BASE", "Qwen/Qwen2.5-0.5B")

    def main():
        model = AutoModelForCausalLM.from_pretrained(NAME, torch_dtype=torch.bfloat16)
        args = TrainingArguments("out", per_device_train_batch_size=4, bf16=True, MORE)
        Trainer(model=model, args=args).train()
"""
LOOP = """
    import os, torch
    from transformers import AutoModelForSequenceClassification

    BATCH = int(os.getenv("SIZE", "2"))
    model = AutoModelForSequenceClassification.from_pretrained("google-bert/bert-base-cased")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True)
"""


def _read(text: str, line: str = "python /c/train.py", **changes: Any) -> Reading:
    body = dedent(text)
    for old, new in changes.items():
        body = body.replace(old, new)
    return read_with_files(line, train__py=body)


def test_the_trainers_arguments_are_read() -> None:
    """Model, batch and what else is a literal, each with the file as its source; never certain."""
    reading = _read(TRAINER, MORE="gradient_accumulation_steps=2, gradient_checkpointing=True")

    assert found(reading, MODEL, BATCH, "model.task", "training.precision") == {
        MODEL: "Qwen/Qwen2.5-0.5B",
        BATCH: 4,
        "model.task": "causal-lm",
        "training.precision": "bf16",
    }
    assert found(
        reading, "training.gradientAccumulationSteps", "training.gradientCheckpointing"
    ) == {"training.gradientAccumulationSteps": 2, "training.gradientCheckpointing": "full"}
    assert reading.sources[BATCH] == "configmap config/train.py per_device_train_batch_size"
    assert reading.spec is not None
    assert not reading.is_certain


def test_a_loop_of_its_own_is_read_by_its_loader_and_optimizer() -> None:
    """What the Trainer would take by default is not a plain loop's."""
    reading = _read(LOOP)

    assert found(reading, MODEL, BATCH, "training.optimizer", "training.precision") == {
        MODEL: "google-bert/bert-base-cased",
        BATCH: 2,
        "training.optimizer": {"name": "adamw"},
        "training.precision": found(reading, "training.precision")["training.precision"],
    }
    assert "training.keepOutputs" not in reading.sources
    assert "training.gradientAccumulationSteps" not in reading.sources


def test_variables_of_the_container_go_before_the_scripts_defaults() -> None:
    """A variable that is set counts, and the source says which."""
    reading = read_script(
        "cat > t.py <<'EOF'\n" + dedent(LOOP) + "EOF\npython t.py", env={"SIZE": "16"}
    )

    assert found(reading, BATCH) == {BATCH: 16}
    assert reading.sources[BATCH].startswith("env SIZE in written by the script")


@pytest.mark.parametrize(
    "value", ["args.batch", "sizes[0]", "os.environ['NOWHERE']", "2 if x else 4"]
)
def test_a_batch_that_is_no_literal_is_a_gap(value: str) -> None:
    """It is named, never taken by default."""
    reading = _read(
        TRAINER,
        MORE="",
        **{"per_device_train_batch_size=4": f"per_device_train_batch_size={value}"},
    )

    assert found(reading, BATCH) == {BATCH: None}
    assert ReasonCode.NO_BATCH in codes(reading)


def test_an_adapter_and_a_quantised_base_are_read() -> None:
    """peft's and bitsandbytes' own names."""
    reading = _read(
        TRAINER,
        MORE="",
        **{
            "def main": "peft = LoraConfig(r=8, lora_alpha=16, target_modules=['q_proj'])\n"
            "bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type='nf4')\n\ndef main"
        },
    )

    assert found(reading, "adapter.rank", "adapter.targetModules", "quantization.bits") == {
        "adapter.rank": 8,
        "adapter.targetModules": ["q_proj"],
        "quantization.bits": 4,
    }


def test_names_inside_lists_and_arithmetic_are_followed() -> None:
    """A name that is bound once stands for its value wherever it is used."""
    reading = _read(
        TRAINER,
        **{
            "NAME =": "Q = 'q_proj'\nPLAIN = False\nHALF = 3\nNAME =",
            "per_device_train_batch_size=4": "per_device_train_batch_size=HALF * 2",
            "bf16=True": "bf16=not PLAIN",
            "MORE": "gradient_checkpointing=PLAIN",
            "def main": "peft = LoraConfig(r=8, target_modules=[Q, 'v_proj'])\n\ndef main",
        },
    )

    assert found(reading, BATCH, "adapter.targetModules", "training.gradientCheckpointing") == {
        BATCH: 6,
        "adapter.targetModules": ["q_proj", "v_proj"],
        "training.gradientCheckpointing": "none",
    }


@pytest.mark.parametrize(
    "changed",
    ["for BATCH in (1, 2): pass", "BATCH = 4", "BATCH += 1", "def f(BATCH): ...", "(BATCH := 3)"],
)
def test_a_name_that_is_bound_again_is_not_known(changed: str) -> None:
    """Which of its values counts is not followed."""
    reading = _read(f"{dedent(LOOP)}\n{changed}\n")

    assert found(reading, BATCH) == {BATCH: None}
    assert ReasonCode.NO_BATCH in codes(reading)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("LoraConfig(r=rank)", "adapter"),
        ("PeftModel.from_pretrained(model, 'x/y')", "adapter"),
        ("model.embed.requires_grad_(False)", "adapter"),
        ("model = FSDP(model)", "parallelism.strategy"),
    ],
)
def test_what_changes_the_job_and_is_not_literal_is_a_gap(line: str, path: str) -> None:
    """No spec of full training comes of it."""
    reading = _read(TRAINER, MORE="", **{"def main": f"{line}\n\ndef main"})

    assert reading.spec is None
    assert any(
        finding.hint and path.partition(".")[0] in finding.hint for finding in reading.unknowns
    )


@pytest.mark.parametrize(
    "line",
    [
        "other = AutoModelForCausalLM.from_pretrained('org/teacher')",
        "model = FastLanguageModel.from_pretrained('org/x')",
        "DPOTrainer(model=model)",
    ],
)
def test_scripts_of_other_kinds_are_not_read(line: str) -> None:
    """Several models, Unsloth's patches and TRL's other trainers: a program that is not known."""
    reading = _read(TRAINER, MORE="", **{"def main": f"{line}\n\ndef main"})

    assert reading.spec is None
    assert codes(reading) == [ReasonCode.NO_MODEL]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x.from_pretrained(",
        "\0.from_pretrained()",
        "x.from_pretrained(" * 300,
        "A.from_pretrained(" + "-" * 5000 + "1)",
        "AutoModel.from_pretrained()\nTrainingArguments(per_device_train_batch_size=None)",
        "AutoModel.from_pretrained('a/b')\nTrainingArguments(per_device_train_batch_size=-1)",
        "AutoModel.from_pretrained(3)\nTrainingArguments(per_device_train_batch_size='"
        + "9" * 999
        + "')",
        "AutoModel.from_pretrained('$X')\nTrainingArguments(per_device_train_batch_size="
        + "9" * 99
        + ")",
        "AutoModel.from_pretrained(x := x)\nDataLoader(batch_size=int('x'))",
        "a = b\nb = a\nAutoModel.from_pretrained(a)\nTrainingArguments()",
    ],
)
def test_bad_scripts_end_in_named_reasons(text: str) -> None:
    """Whatever the file holds, nothing is raised and nothing is guessed."""
    reading = read_with_files("python /c/train.py", train__py=text)

    assert reading.spec is None
    assert reading.unknowns


def test_a_script_that_is_too_long_is_not_read() -> None:
    """It takes its length from what is read of a workload."""
    text = dedent(TRAINER).replace("MORE", "") + "x = 1\n" * 30_000

    reading = read_with_files("python /c/train.py", train__py=text)

    assert codes(reading) == [ReasonCode.NO_MODEL]
