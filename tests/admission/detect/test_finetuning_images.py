"""Diffusion models: the examples of diffusers and a workflow's DreamBooth trainer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.admission.detect.jobs import codes, found, read_args

SD = "--pretrained_model_name_or_path=stabilityai/stable-diffusion-2-1-base"
WORKFLOW = ("python", "/app/finetuner.py", "--run_name=a",
            "--model=/pvc/models/stabilityai/stable-diffusion-2-1-base")  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("train_text_to_image.py",), {
            "model.source": "diffusers", "model.task": "text-to-image", "input.batchSize": 16,
            "input.imageSize": [3, 512, 512], "training.precision": "fp32", "adapter": None,
            "training.optimizer": {"name": "adamw"}}),
        (("train_text_to_image_sdxl.py", "--use_ema", "--use_8bit_adam", "--allow_tf32"), {
            "input.imageSize": [3, 1024, 1024], "training.ema": True,
            "training.optimizer": {"name": "adamw", "bits": 8}, "training.precision": "tf32"}),
        (("train_dreambooth.py", "--with_prior_preservation", "--mixed_precision=fp16"), {
            "input.batchSize": 4, "input.imagesPerSample": 2, "training.precision": "amp-fp16"}),
        (("train_dreambooth_lora.py", "--mixed_precision", "bf16", "--rank=16",
          "--train_batch_size=1", "--resolution=768", "--gradient_checkpointing"), {
            "adapter": {"type": "lora", "rank": 16, "alpha": 16.0},
            "training.precision": "bf16", "input.batchSize": 1,
            "input.imageSize": [3, 768, 768], "training.gradientCheckpointing": "full"}),
        (("train_dreambooth_lora_flux.py", "--optimizer=prodigy"), {
            "adapter.rank": 4, "training.optimizer": {"name": "prodigy"}}),
    ],
)  # fmt: skip
def test_examples_of_diffusers(words: tuple[str, ...], expected: dict[str, Any]) -> None:
    """Each with its own defaults; a LoRA's base is held in the mixed precision."""
    reading = read_args("python", *words, SD)

    assert reading.spec is not None
    assert reading.is_certain
    assert found(reading, *expected) == expected


def test_the_launcher_may_say_the_precision() -> None:
    """accelerate's flag, unless the script has its own."""
    words = ("accelerate", "launch", "--multi_gpu", "--mixed_precision=fp16")

    reading = read_args(*words, "train_text_to_image.py", SD, gpus=2)

    assert found(reading, "training.precision", "parallelism.strategy") == {
        "training.precision": "amp-fp16",
        "parallelism.strategy": "ddp",
    }


@pytest.mark.parametrize("script", ["train_controlnet.py", "textual_inversion.py", "mine.py"])
def test_what_trains_something_else_is_not_certain(script: str) -> None:
    """A ControlNet, one embedding, or a script that nobody knows."""
    reading = read_args("python", script, SD, "--train_batch_size=2", "--resolution=512")

    assert reading.spec is not None
    assert not reading.is_certain


@pytest.mark.parametrize(
    "words",
    [
        ("train_dreambooth.py", "--pretrained_model_name_or_path=/models/mine"),
        ("train_dreambooth.py", SD, "--train_batch_size={{batch}}"),
        ("train_dreambooth.py", SD, "--resolution=512,512"),
        ("train_dreambooth.py", SD, "--mixed_precision=$P"),
        ("train_dreambooth_lora.py", SD, "--rank=many"),
    ],
)
def test_what_cannot_be_read_is_named(words: tuple[str, ...]) -> None:
    """A value that was told and is not known is no default."""
    reading = read_args("python", *words)

    assert reading.spec is None
    assert codes(reading)


def test_a_class_data_set_is_a_second_image() -> None:
    """What only the image's copy decides, precision and optimizer, is left out."""
    reading = read_args(
        *WORKFLOW, "--instance_dataset=/a", "--class_dataset=/b", "--batch_size=3",
        "--gradient_checkpointing", "true",
    )  # fmt: skip

    assert reading.spec is not None
    expected = {
        "model.name": "stabilityai/stable-diffusion-2-1-base",
        "input": {"batchSize": 3, "imageSize": [3, 512, 512], "imagesPerSample": 2},
        "training": {"gradientCheckpointing": "full"},
    }
    assert found(reading, *expected) == expected
