"""What uses a GPU and trains nothing is skipped without a word."""

from __future__ import annotations

import pytest

from admission.codes import ReasonCode
from tests.admission.detect.jobs import read_args, read_script


@pytest.mark.parametrize(
    "words",
    [
        ("nvidia-smi",),
        ("sh", "-c", "nvidia-smi -L && sleep infinity"),
        ("/usr/bin/sleep", "3600"),
        ("/opt/nccl-tests/build/all_reduce_perf", "-b", "8"),
        ("./vectorAdd",),
        ("jupyter", "lab", "--ip=0.0.0.0"),
        ("vllm", "serve", "meta-llama/Meta-Llama-3-8B"),
        ("python", "-m", "vllm.entrypoints.openai.api_server", "--model", "x/y"),
        ("python", "-m", "sglang.launch_server", "--model-path", "x/y"),
        ("python3", "-m", "huggingfaceserver", "--model_id=x/y"),
        ("text-embeddings-router", "--model-id", "x/y"),
        ("trtllm-serve", "x/y"),
        ("trl", "vllm-serve", "--model", "x/y"),
        ("litgpt", "serve", "x"),
        ("llamafactory-cli", "webui"),
        ("axolotl", "fetch", "examples"),
        ("tune", "download", "x/y"),
        ("serve", "run", "app:main"),
        ("ray", "start", "--head", "--block"),
        ("lm_eval", "--model", "hf"),
        ("accelerate", "launch", "-m", "lm_eval", "--model", "hf"),
        ("dcgmproftest12", "-t", "1004"),
        ("mpirun", "-np", "8", "all_reduce_perf_mpi", "-b", "8"),
        ("/usr/local/bin/start-notebook.sh",),
        ("bash", "-c", "while true; do nvidia-smi; sleep 60; done"),
        ("sh", "-c", "cat <<EOF > /tmp/x\npython train.py\nEOF\nsleep infinity"),
        ("echo", "hello"),
    ],
)
def test_no_training_is_skipped(words: tuple[str, ...]) -> None:
    """Smoke tests, servers and notebooks are nobody's problem."""
    reading = read_args(*words)

    assert (reading.skip, reading.spec, reading.unknowns) == (ReasonCode.NO_TRAINING, None, ())


@pytest.mark.parametrize("image", ["vllm/vllm-openai:v0.9", "quay.io/jupyter/pytorch-notebook"])
def test_images_that_serve_need_no_command(image: str) -> None:
    """Published images that do nothing else are skipped as they are."""
    assert read_args(image=image).skip is ReasonCode.NO_TRAINING


@pytest.mark.parametrize(
    "script",
    ["wandb agent team/sweep", "supervisord -n", "docker run --gpus all x", "ssh worker train"],
)
def test_what_may_train_unseen_is_not_skipped(script: str) -> None:
    """A program that starts others from elsewhere."""
    assert read_script(f"nvidia-smi; {script}").skip is None
