"""Launchers are taken off until a script is left, with what they decide."""

from __future__ import annotations

import pytest

from admission.codes import ReasonCode
from tests.admission.detect.jobs import (
    codes,
    config_map,
    container,
    found,
    job,
    pytorchjob,
    read,
    read_args,
    read_script,
)

SCRIPT = ("/imagenet/main.py", "-a", "resnet18", "-b", "32")
HF = (
    "run_clm.py",
    "--do_train",
    "--model_name_or_path=openai-community/gpt2",
    "--per_device_train_batch_size=4",
)
STRATEGY = "parallelism.strategy"
DEGREE = "parallelism.dataParallel"


@pytest.mark.parametrize(
    "words",
    [
        ("python", *SCRIPT),
        ("python3.11", "-u", "-W", "ignore", *SCRIPT),
        ("/opt/conda/bin/python", *SCRIPT),
        (*SCRIPT,),
        ("nice", "-n", "5", "python", *SCRIPT),
        ("env", "A=1", "B=2", "python", *SCRIPT),
        ("timeout", "-k", "9", "3600", "python", *SCRIPT),
        ("numactl", "--cpunodebind=0", "python", *SCRIPT),
        ("nsys", "profile", "-o", "x", "python", *SCRIPT),
        ("uv", "run", "--with", "timm", *SCRIPT),
        ("conda", "run", "-n", "train", "python", *SCRIPT),
        ("tini", "--", "python", *SCRIPT),
        ("torchrun", "--standalone", *SCRIPT),
        ("torchrun", "--nproc-per-node", "1", "--", *SCRIPT),
        ("python", "-m", "torch.distributed.run", "--nproc_per_node=1", *SCRIPT),
        ("python", "-m", "torch.distributed.launch", "--use_env", *SCRIPT),
        ("accelerate", "launch", "--num_processes=1", *SCRIPT),
        ("accelerate", "launch", "--num_machines", "1", "--multi_gpu", *SCRIPT),
        ("deepspeed", "--num_gpus", "1", "--master_port=29500", *SCRIPT),
        ("sh", "-c", "exec python " + " ".join(SCRIPT)),
        ("bash", "-xeo", "pipefail", "-c", "cd /x; python " + " ".join(SCRIPT)),
        ("bash", "-c", 'exec "$@"', "--", "python", *SCRIPT),
        ("bash", "-c", "bash -c 'python " + " ".join(SCRIPT) + "'"),
        ("bash", "-c", 'eval "python ' + " ".join(SCRIPT) + '"'),
    ],
)
def test_every_launcher_leads_to_the_script(words: tuple[str, ...]) -> None:
    """However it is started, the same script says the same."""
    reading = read_args(*words)

    assert reading.unknowns == ()
    assert reading.spec is not None
    assert (reading.spec.model.name, reading.spec.input.batch_size) == ("resnet18", 32)


@pytest.mark.parametrize(
    ("words", "gpus", "strategy", "degree"),
    [
        (("python", *HF), 1, "none", None),
        (("torchrun", "--nproc_per_node=1", *HF), 1, "none", None),
        (("torchrun", "--nproc_per_node=4", *HF), 4, "ddp", 4),
        (("torchrun", "--nproc_per_node=gpu", *HF), 8, "ddp", 8),
        (("torchrun", "--nproc_per_node=4", "--nnodes=2", *HF), 4, "ddp", 8),
        (("torchrun", "--nproc_per_node=2", "--nnodes=1:4", *HF), 2, "ddp", 2),
        (("torchrun", *HF), 4, "none", None),
        (("accelerate", "launch", *HF), 4, "ddp", 4),
        (("accelerate", "launch", "--num_processes=8", "--num_machines=2", *HF), 4, "ddp", 8),
        (("accelerate", "launch", "--use_deepspeed", *HF), 4, "zero2", 4),
        (("accelerate", "launch", "--use_deepspeed", "--zero_stage=3", *HF), 4, "zero3", 4),
        (("accelerate", "launch", "--use_fsdp", *HF), 4, "fsdp", 4),
        (("deepspeed", *HF), 4, "ddp", 4),
        (("python", *HF), 4, "dp", 4),
    ],
)
def test_parallelism(words: tuple[str, ...], gpus: int, strategy: str, degree: int | None) -> None:
    """Processes come from the launcher's flags, its defaults and the container's GPUs."""
    reading = read_args(*words, gpus=gpus)

    assert reading.unknowns == ()
    assert found(reading, STRATEGY, DEGREE) == {STRATEGY: strategy, DEGREE: degree}


def test_counting_the_gpus_in_the_script_is_understood() -> None:
    """`$(nvidia-smi -L | wc -l)` is every GPU of the container."""
    script = f"torchrun --nproc_per_node=$(nvidia-smi -L | wc -l) {' '.join(HF)}"

    assert found(read_script(script, gpus=8), DEGREE) == {DEGREE: 8}


def test_replicas_of_all_roles_make_the_world() -> None:
    """A PyTorchJob's ranks are those of Master and Workers together."""
    reading = read(pytorchjob(container("torchrun", *HF, gpus=2), workers=3))

    assert found(reading, STRATEGY, DEGREE) == {STRATEGY: "ddp", DEGREE: (1 + 3) * 2}


def test_hidden_gpus_do_not_count() -> None:
    """`CUDA_VISIBLE_DEVICES` leaves the process one of two GPUs."""
    reading = read_args("python", *HF, gpus=2, env={"CUDA_VISIBLE_DEVICES": "0"})

    assert found(reading, STRATEGY) == {STRATEGY: "none"}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("torchrun", "--nproc_per_node=$GPUS", *HF), ReasonCode.TEMPLATE),
        (("torchrun", "--nproc_per_node=2", *HF), ReasonCode.UNSUPPORTED),
        (("accelerate", "launch", "--use_megatron_lm", *HF), ReasonCode.UNSUPPORTED),
        (("deepspeed", *HF, "--deepspeed", "ds.json"), ReasonCode.UNSUPPORTED),
        (("python", "train_mine.py", "--batch-size=8"), ReasonCode.NO_MODEL),
        (("python", "-c", "import torch"), ReasonCode.NO_MODEL),
        (("axolotl", "train", "x.yaml"), ReasonCode.DOCUMENT),
        (("python", "-m", "axolotl.cli.train", "x.yaml"), ReasonCode.DOCUMENT),
        (("bash", "/scripts/run.sh"), ReasonCode.NO_MODEL),
        (("bash", "-c", "${CMD}"), ReasonCode.UNRESOLVED_VARIABLE),
        (("{{workflow.command}}",), ReasonCode.TEMPLATE),
        (("--epochs", "3"), ReasonCode.NO_MODEL),
        ((), ReasonCode.NO_COMMAND),
    ],
)
def test_what_cannot_be_read_is_named(words: tuple[str, ...], code: ReasonCode) -> None:
    """Unknown is a reason with a place, never a guess."""
    reading = read_args(*words, env={"HF_TOKEN": "x"})

    assert reading.spec is None
    assert codes(reading) == [code]
    assert reading.unknowns[0].path.startswith("spec.template.spec.containers[0]")


def test_a_training_beside_a_smoke_test_is_read() -> None:
    """`nvidia-smi && python …` trains."""
    reading = read_script("pip install x && nvidia-smi && python " + " ".join(SCRIPT))

    assert reading.spec is not None


def test_another_training_in_the_container_is_a_warning() -> None:
    """What prepares data is not mentioned; what a launcher starts is."""
    line = "python " + " ".join(SCRIPT)

    assert read_script(f"python prepare.py; {line}").warnings == ()
    assert "mine.py" in read_script(f"torchrun mine.py; {line}").warnings[0]


def test_two_different_trainings_are_unknown() -> None:
    """Which of them needs more is not decided here; the same one twice is one."""
    line = "python " + " ".join(SCRIPT)

    assert codes(read_script(f"{line}; {line} -b 64")) == [ReasonCode.UNSUPPORTED]
    assert read_script(f"{line}; {line}").spec is not None


def test_unresolved_flags_matter_only_where_they_are_needed() -> None:
    """An unknown output folder is nothing; an unknown batch is."""
    harmless = read_script(f"python {' '.join(HF)} --output_dir $OUT")
    needed = read_script("python " + " ".join(HF[:-1]) + " --per_device_train_batch_size $B")

    assert harmless.spec is not None
    assert codes(needed) == [ReasonCode.UNRESOLVED_VARIABLE]


def test_a_word_that_may_hold_flags_is_a_warning() -> None:
    """`$EXTRA_ARGS` is not seen into, and that is said."""
    reading = read_script(f"python {' '.join(HF)} $EXTRA_ARGS")

    assert reading.spec is not None
    assert any("$EXTRA_ARGS" in warning for warning in reading.warnings)


def test_the_kubelet_expands_first() -> None:
    """`$(NAME)` is a variable of the container, in args and in other variables."""
    reading = read_args(
        "python",
        "/imagenet/main.py",
        "-a",
        "$(ARCH)",
        "-b=$(BATCH)",
        env={"SIZE": "50", "ARCH": "resnet$(SIZE)", "BATCH": "16"},
    )

    assert found(reading, "model.name", "input.batchSize") == {
        "model.name": "resnet50",
        "input.batchSize": 16,
    }


def test_variables_from_elsewhere() -> None:
    """A ConfigMap's value counts once it was read; a Secret's never; a GPU count is known."""
    env = {
        "B": {"valueFrom": {"configMapKeyRef": {"name": "settings", "key": "batch"}}},
        "S": {"valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}},
        "G": {"valueFrom": {"resourceFieldRef": {"resource": "limits.nvidia.com/gpu"}}},
    }
    line = "torchrun --nproc_per_node=$G run_clm.py --do_train --model_name_or_path org/x "
    body = container("sh", "-c", line + "--per_device_train_batch_size ${B:-8}", gpus=2, env=env)

    without = read(job(body))
    with_it = read(job(body), documents=config_map("settings", batch="6"))

    assert codes(without) == [ReasonCode.UNRESOLVED_VARIABLE]
    assert found(with_it, "input.batchSize", DEGREE) == {"input.batchSize": 6, DEGREE: 2}


def test_variables_of_the_allocator_are_kept() -> None:
    """What changes how PyTorch allocates goes into the spec, also when the script exports it."""
    reading = read_script(
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; python " + " ".join(SCRIPT)
    )

    assert found(reading, "runtime.env") == {
        "runtime.env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    }


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("pytorch/pytorch:2.4.1-cuda12.1-cudnn9-runtime", "2.4.1+cu121"),
        ("docker.io/pytorch/pytorch:2.8.0-cuda12.8-cudnn9-devel@sha256:0", "2.8.0+cu128"),
        ("pytorch/pytorch:latest", None),
        ("registry.example/llama-7b:2.4.1-cuda12.1", None),
    ],
)
def test_only_images_with_a_rule_tell_a_version(image: str, version: str | None) -> None:
    """Names of other images hint and lie; they are not read."""
    reading = read_args("python", *SCRIPT, image=image)

    assert found(reading, "frameworkVersion") == {"frameworkVersion": version}


def test_pinned_packages_tell_versions() -> None:
    """`pip install torch==…` beats the image; libraries that move memory are kept."""
    reading = read_script(
        "python -m pip install 'torch==2.6.0' transformers==4.44.2; python " + " ".join(HF),
        image="pytorch/pytorch:2.4.1-cuda12.1-cudnn9-runtime",
    )

    assert found(reading, "frameworkVersion", "runtime.libraries") == {
        "frameworkVersion": "2.6.0",
        "runtime.libraries": {"transformers": "4.44.2"},
    }


@pytest.mark.parametrize(
    ("resources", "word"),
    [
        ({"limits": {"amd.com/gpu": 1}}, "amd.com/gpu"),
    ],
)
def test_budgets_that_are_not_known(resources: dict[str, object], word: str) -> None:
    """Another vendor's card leaves the budget open."""
    reading = read(job({**container("python", *SCRIPT), "resources": resources}))

    assert reading.spec is None
    assert word in reading.unknowns[0].reason


def test_requests_without_limits_are_a_warning() -> None:
    """Published manifests do it; the API server refuses it."""
    body = {**container("python", *SCRIPT), "resources": {"requests": {"nvidia.com/gpu": 1}}}
    reading = read(job(body))

    assert reading.spec is not None
    assert "requests without limits" in reading.warnings[0]
