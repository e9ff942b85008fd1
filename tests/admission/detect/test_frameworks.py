"""What a job that nobody can read seems to be: its hint names the framework."""

from __future__ import annotations

import pytest

from tests.admission.detect.jobs import found, read, read_args, read_with_files


def _hint(reading: object) -> str:
    (finding,) = reading.unknowns  # type: ignore[attr-defined]
    return str(finding.hint)


@pytest.mark.parametrize(
    ("image", "framework"),
    [
        ("tensorflow/tensorflow:2.15.0-gpu", "tensorflow"),
        ("registry.example.com/team/keras-cv:1", "tensorflow"),
        ("mxnet/python:1.9.1_gpu", "mxnet"),
        ("ghcr.io/nvidia/jax:nightly", "jax"),
        ("registry.example.com/team/train:1", "pytorch"),
    ],
)
def test_an_image_tells_enough_for_a_hint(image: str, framework: str) -> None:
    """And nothing that would stand in the spec."""
    reading = read_args("python", "/app/own.py", image=image)

    assert f"{{framework: {framework}, " in _hint(reading)
    assert found(reading, "framework") == {"framework": None}


@pytest.mark.parametrize("launcher", ["torchrun", "accelerate launch", "deepspeed"])
def test_a_launcher_of_pytorch_tells(launcher: str) -> None:
    """It starts nothing else, whatever the image is called."""
    reading = read_args(*launcher.split(), "own.py", image="tensorflow/tensorflow:2.15.0-gpu")

    assert "{framework: pytorch, " in _hint(reading)
    assert found(reading, "framework") == {"framework": "pytorch"}


@pytest.mark.parametrize(
    ("line", "framework"),
    [("import tensorflow as tf", "tensorflow"), ("from flax import nnx", "jax")],
)
def test_imports_of_a_script_that_is_seen_tell(line: str, framework: str) -> None:
    """They come before the image's name."""
    reading = read_with_files("python /c/own.py", own__py=f"import os\n{line}\n")

    assert f"{{framework: {framework}, " in _hint(reading)


def test_the_kind_of_the_object_tells() -> None:
    """A TFJob is TensorFlow's where nothing else says so."""
    template = {
        "spec": {
            "containers": [
                {
                    "name": "tensorflow",
                    "command": ["python", "own.py"],
                    "resources": {"limits": {"nvidia.com/gpu": 1}},
                }
            ]
        }
    }
    body = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "x"},
        "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}},
    }

    assert "{framework: tensorflow, " in _hint(read(body))


def test_a_trainer_that_is_seen_and_not_read_is_named() -> None:
    """The reason is what keeps the script from being read."""
    text = "from unsloth import FastLanguageModel\nm, t = FastLanguageModel.from_pretrained('x')\n"
    (finding,) = read_with_files("python /c/own.py", own__py=text).unknowns

    assert "FastLanguageModel is not read" in finding.reason
