"""nanoGPT and litgpt, and the files that programs ship."""

from __future__ import annotations

import pytest

from tests.admission.detect.jobs import container, found, job, read, read_args, read_with_files

STEPS = "training.gradientAccumulationSteps"
CONFIG = "model.config"
NANO = """
import time
n_layer = 6
batch_size = 2 * 4
gradient_accumulation_steps = 5 * 8
wandb_run_name = 'x' + str(time.time())
"""


def test_nanogpt_shares_its_accumulation_among_processes() -> None:
    """A file of literals, flags over it; 40 steps over 8 processes are 5."""
    reading = read_with_files(
        "torchrun --nproc_per_node 8 nanoGPT/train.py /c/x.py --block_size=256",
        gpus=8,
        x__py=NANO,
    )

    assert found(
        reading,
        f"{CONFIG}.n_layer",
        f"{CONFIG}.n_embd",
        f"{CONFIG}.vocab_size",
        "input.batchSize",
        "input.sequenceLength",
        STEPS,
        "parallelism.strategy",
    ) == {
        f"{CONFIG}.n_layer": 6,
        f"{CONFIG}.n_embd": 768,
        f"{CONFIG}.vocab_size": 50304,
        "input.batchSize": 8,
        "input.sequenceLength": 256,
        STEPS: 40 // 8,
        "parallelism.strategy": "ddp",
    }


def test_nanogpt_tunes_a_published_model() -> None:
    """Its own file for Shakespeare starts from GPT-2 XL."""
    reading = read_args("python", "nanoGPT/train.py", "config/finetune_shakespeare.py")

    assert found(reading, "model.name", "input.batchSize", STEPS) == {
        "model.name": "gpt2-xl",
        "input.batchSize": 1,
        STEPS: 32,
    }


@pytest.mark.parametrize(
    "arguments", [("config/mine.py",), ("--init_from=resume",), ("--batch_size=$B",)]
)
def test_what_of_nanogpt_cannot_be_read_is_named(arguments: tuple[str, ...]) -> None:
    """A file inside the image, a checkpoint, a template."""
    reading = read_args("python", "nanoGPT/train.py", *arguments)

    assert reading.spec is None
    assert reading.unknowns


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "litgpt finetune_lora google/gemma-2b --quantize bnb.nf4-dq --lora_mlp true",
            {
                "model.name": "google/gemma-2b",
                "adapter.targetModules": ["q_proj", "v_proj", "gate_proj", "up_proj", "down_proj"],
                "quantization.doubleQuant": True,
                "input.batchSize": 1,
                STEPS: 16,
                "training.precision": "amp-bf16",
            },
        ),
        (
            "litgpt finetune full --checkpoint_dir checkpoints/meta-llama/Llama-2-7b-hf "
            "--devices 4 --train.micro_batch_size 2 --precision bf16-true",
            {
                "model.name": "meta-llama/Llama-2-7b-hf",
                "adapter": None,
                "parallelism.strategy": "fsdp",
                "parallelism.dataParallel": 4,
                "training.gradientCheckpointing": "full",
                "training.precision": "bf16",
                STEPS: 16 // 4 // 2,
            },
        ),
        (
            "litgpt pretrain tiny-llama-1.1b",
            {
                "model.name": "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T",
                "input.batchSize": 4,
                "parallelism.dataParallel": 4,
                STEPS: 512 // 4 // 4,
            },
        ),
    ],
)
def test_litgpt_commands(line: str, expected: dict[str, object]) -> None:
    """Each sub-command has its own defaults."""
    reading = read_args(*line.split(), gpus=4)

    assert reading.spec is not None
    assert found(reading, *expected) == expected


@pytest.mark.parametrize(
    ("line", "model", "batch"),
    [
        ("composer -n 1 train/train.py train/yamls/pretrain/mpt-7b.yaml", "mpt", 8),
        (
            "litgpt finetune_lora --config https://h/main/config_hub/finetune/llama-2-7b/qlora.yaml",
            "meta-llama/Llama-2-7b-hf",
            2,
        ),
        (
            "python MaxText/train.py MaxText/configs/models/gpu/llama2_7b.yml run_name=x",
            "meta-llama/Llama-2-7b-hf",
            4,
        ),
    ],
)
def test_files_that_programs_ship_are_known(line: str, model: str, batch: int) -> None:
    """They lie in the image or at a URL; what their repositories hold is taken."""
    reading = read_args(*line.split())

    assert reading.spec is not None
    assert found(reading, "model.name", "input.batchSize") == {
        "model.name": model,
        "input.batchSize": batch,
    }


def test_a_file_of_such_a_name_that_is_ones_own_is_not_taken_for_it() -> None:
    """One on a volume is somebody's own."""
    body = container(
        "composer",
        "train/train.py",
        "/data/train/yamls/pretrain/mpt-7b.yaml",
        volumeMounts=[{"name": "d", "mountPath": "/data"}],
    )
    whole = job(body)
    whole["spec"]["template"]["spec"]["volumes"] = [
        {"name": "d", "persistentVolumeClaim": {"claimName": "d"}}
    ]

    reading = read(whole)

    assert reading.spec is None
    assert found(reading, "input.batchSize") == {"input.batchSize": None}


@pytest.mark.parametrize(
    "flags", ["--quantize bnb.int2", "--devices $N", "--precision half", "--config /c/x.yaml"]
)
def test_what_of_litgpt_cannot_be_read_is_named(flags: str) -> None:
    """Values nobody knows and a file that is not seen."""
    reading = read_args("litgpt", "finetune_lora", "org/model", *flags.split())

    assert reading.spec is None
    assert reading.unknowns
