"""Images that start their own program: told by variables or flags that nobody else has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.admission.detect.jobs import codes, container, found, job, read, read_args

PARAMETERS = json.dumps({"output_dir": "/x", "per_device_train_batch_size": 4, "bf16": True})
LORA = json.dumps({"peft_type": "LORA", "r": 16, "lora_alpha": 32, "target_modules": ["q", "v"]})
TRAIN = ("--model_uri", "hf://google-bert/bert-base-cased", "--transformer_type",
         "AutoModelForSequenceClassification", "--num_labels", "5")  # fmt: skip


@pytest.mark.parametrize("start", [(), ("torchrun", "hf_llm_training.py")])
def test_the_train_api_is_known_by_its_flags(start: tuple[str, ...]) -> None:
    """The SDK writes arguments only; the image's entry point starts the script."""
    reading = read_args(*start, *TRAIN, "--training_parameters", PARAMETERS, "--lora_config", LORA)

    assert reading.spec is not None
    expected: dict[str, Any] = {
        "model.name": "google-bert/bert-base-cased",
        "model.task": "sequence-classification",
        "model.numLabels": 5,
        "input": {"batchSize": 4},
        "training.precision": "amp-bf16",
        "adapter": {
            "type": "lora", "rank": 16, "alpha": 32.0, "dropout": 0.0, "targetModules": ["q", "v"],
        },
    }  # fmt: skip
    assert found(reading, *expected) == expected


@pytest.mark.parametrize(
    "text", ["{{parameters}}", "[]", "", '{"per_device_train_batch_size": "x"}']
)
def test_parameters_that_are_no_json_are_named(text: str) -> None:
    """The batch is in them."""
    reading = read_args(*TRAIN, "--training_parameters", text, "--lora_config", LORA)

    assert reading.spec is None
    assert codes(reading)


def test_other_arguments_alone_are_not_guessed() -> None:
    """An image's own entry point stays unseen."""
    reading = read(job(container("--model_uri", "hf://org/x", "--epochs", "3")))

    assert reading.spec is None
    assert codes(reading)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (
            {"LORA_R": "8", "LORA_ALPHA": "16", "LORA_DROPOUT": "0.1", "TRAIN_BATCH_SIZE": "2"},
            {"adapter": {"type": "lora", "rank": 8, "alpha": 16, "dropout": 0.1}},
        ),
        (
            {"BATCH_SIZE_PER_DEVICE": "2", "LOAD_IN_4BIT": "true"},
            {"quantization.bits": 4, "input.batchSize": 2},
        ),
        (
            {"PER_DEVICE_TRAIN_BATCH_SIZE": "2", "GRADIENT_CHECKPOINTING": "True"},
            {"training.gradientCheckpointing": "full", "training.precision": None},
        ),
        ({"BATCH_SIZE": "4", "LORA_R": "none"}, {"adapter": None, "input.batchSize": 4}),
    ],
)
def test_variables_that_say_what_they_are(env: dict[str, str], expected: dict[str, Any]) -> None:
    """Precision, optimizer and sharing are not visible: they are left out, with a doubt."""
    reading = read(job(container(env={"MODEL_NAME": "google/gemma-2b", **env})))

    assert reading.spec is not None
    assert not reading.is_certain
    assert found(reading, *expected) == expected


@pytest.mark.parametrize("rank", ["{{rank}}", "many", "99999999"])
def test_an_adapter_whose_rank_is_not_known_is_a_gap(rank: str) -> None:
    """It is no full training."""
    variables = {"MODEL_NAME": "google/gemma-2b", "TRAIN_BATCH_SIZE": "1", "LORA_R": rank}

    reading = read(job(container(env=variables)))

    assert reading.spec is None
    assert codes(reading)
