"""Calls that only explain or check themselves are no training; those inside `$( … )` are."""

from __future__ import annotations

import pytest

from admission.codes import ReasonCode
from tests.admission.detect.jobs import found, read_args, read_script

MODEL, BATCH = "model.name", "input.batchSize"
TRAINING = "python /imagenet/main.py -a resnet18 -b 32"


@pytest.mark.parametrize(
    "script",
    [
        "torchrun --help",
        "accelerate launch --help; accelerate env; accelerate config default",
        f"{TRAINING} --help",
        "python --version && python3 -V && nvcc --version",
        "bash -n /jobs/train.sh",
        f"cat > t.sh <<'EOF'\n{TRAINING}\nEOF\nbash -n t.sh",
        "python -m py_compile train.py",
        "bash --version",
        "axolotl --help",
    ],
)
def test_what_explains_or_checks_is_no_training(script: str) -> None:
    """`--help`, `--version`, `bash -n`: names of programs, and none of them runs."""
    assert read_script(script).skip is ReasonCode.NO_TRAINING


@pytest.mark.parametrize(
    "script",
    [
        f"OUT=$({TRAINING}); echo $OUT",
        f"OUT=`{TRAINING}`",
        f"echo $({TRAINING} | tail -n 1)",
        f"if ! OUT=$({TRAINING} 2>&1); then exit 1; fi",
        f"OUT=$(cd /imagenet && {TRAINING})",
        f'echo "$({TRAINING})"',
    ],
)
def test_a_training_whose_output_is_captured_is_one(script: str) -> None:
    """It runs all the same."""
    assert found(read_script(script), MODEL, BATCH) == {MODEL: "resnet18", BATCH: 32}


@pytest.mark.parametrize(
    "script",
    [
        "N=$(python -c 'import torch; print(torch.cuda.device_count())'); nvidia-smi",
        "V=$(python --version); nvidia-smi",
        "D=$(dirname /run/train); nvidia-smi",
    ],
)
def test_a_question_that_is_captured_is_none(script: str) -> None:
    """Scripts ask for the number of GPUs in this way."""
    assert read_script(script).skip is ReasonCode.NO_TRAINING


def test_help_of_another_program_in_the_same_script_hides_nothing() -> None:
    """Each command counts for itself."""
    reading = read_script(f"torchrun --help >/dev/null; {TRAINING}")

    assert found(reading, BATCH) == {BATCH: 32}


def test_a_shell_that_is_given_text_is_read() -> None:
    """`--help` in the text is not the shell's."""
    reading = read_args("bash", "-c", f"tool --help; {TRAINING}")

    assert found(reading, BATCH) == {BATCH: 32}
