"""The URL of a clone tells which program a script is, whatever its folder is called."""

from __future__ import annotations

import pytest

from admission.detect.clones import fork_of, note_clone, repository_of
from tests.admission.detect.jobs import found, read_script

MODEL, BATCH, DEGREE = "model.name", "input.batchSize", "parallelism.dataParallel"
NANO = "https://github.com/karpathy/nanoGPT"


@pytest.mark.parametrize(
    "clone",
    [
        f"git clone {NANO} /w/code && cd /w/code && python train.py",
        f"git clone --depth 1 -b main {NANO}.git code && cd code && python train.py",
        f"cd /w/code && git clone {NANO} . && python train.py",
        f"git -C /w clone {NANO} code && python /w/code/train.py",
    ],
)
def test_a_clone_in_a_folder_of_another_name(clone: str) -> None:
    """It is the repository all the same, and nobody changed it."""
    reading = read_script(f"{clone} --batch_size=4 --dtype=bfloat16")

    assert found(reading, MODEL, BATCH) == {MODEL: "gpt2", BATCH: 4}
    assert reading.is_certain


@pytest.mark.parametrize("folder", ["nanoGPT", "code"])
def test_somebody_s_copy_is_a_doubt(folder: str) -> None:
    """What was changed there is not seen: an estimate that warns."""
    url = "https://github.com/someone/nanoGPT"
    reading = read_script(f"git clone {url} {folder} && cd {folder} && python train.py")

    assert found(reading, MODEL) == {MODEL: "gpt2"}
    assert not reading.is_certain
    assert any(url in warning for warning in reading.warnings)


def test_a_clone_beside_the_script_says_nothing() -> None:
    """Only the folder that holds the script counts."""
    reading = read_script(f"git clone {NANO} /w/other; python /app/train.py --batch_size=4")

    assert reading.spec is None


def test_timm_s_own_launcher() -> None:
    """`sh distributed_train.sh 4 …` is torchrun with four processes of train.py beside it."""
    reading = read_script(
        "git clone https://github.com/huggingface/pytorch-image-models /c; cd /c\n"
        "sh distributed_train.sh 4 /data --model resnet50 -b 64 --amp",
        gpus=4,
    )

    assert found(reading, MODEL, BATCH, DEGREE) == {MODEL: "resnet50", BATCH: 64, DEGREE: 4}
    assert not reading.is_certain


def test_the_parts() -> None:
    """Folders by git's rules; owners by the URL."""
    cloned: dict[str, str] = {}
    note_clone(["git", "clone", f"{NANO}.git/"], directory="/w", cloned=cloned)
    note_clone(["git", "pull", "https://example.com/x/y"], directory="/w", cloned=cloned)
    note_clone(["git", "clone", "$URL"], directory="/w", cloned=cloned)

    assert cloned == {"nanoGPT": NANO}
    assert repository_of("train.py", directory="/w/nanoGPT/sub", cloned=cloned) == NANO
    assert repository_of("train.py", directory="/w", cloned=cloned) == ""
    assert fork_of(NANO) == fork_of("") == fork_of("file:///x") == ""
    assert fork_of("https://token@github.com/someone/nanoGPT")


def test_what_follows_a_clone_runs_in_it() -> None:
    """`git clone … && cd …` at the end of a line: elsewhere the script is not."""
    reading = read_script(f"git clone {NANO} && cd nanoGPT\npython train.py --dtype=bfloat16")

    assert found(reading, MODEL) == {MODEL: "gpt2"}
    assert reading.is_certain


@pytest.mark.parametrize("line", ["[ -d nanoGPT ] && cd nanoGPT", "ls nanoGPT || cd nanoGPT"])
def test_a_folder_that_is_entered_perhaps_is_not_known(line: str) -> None:
    """A test decides which folder the next line runs in."""
    reading = read_script(f"git clone {NANO}\n{line}\npython train.py --dtype=bfloat16")

    assert reading.spec is None
