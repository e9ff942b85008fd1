"""Families of scripts: whose a script is, and what its flags and defaults say."""

from __future__ import annotations

from typing import Any

import pytest

from admission.codes import ReasonCode
from tests.admission.detect.jobs import codes, container, found, job, read, read_args

IMAGENET = ("python", "/imagenet/main.py")
VISION = ("python", "references/classification/train.py")
TIMM = ("python", "/pytorch-image-models/train.py")
CLM = ("python", "run_clm.py", "--do_train", "--model_name_or_path=openai-community/gpt2")
GLUE = ("python", "run_glue.py", "--do_train", "--model_name_or_path=google-bert/bert-base-uncased")
LLAMA = ("--model_name_or_path=meta-llama/Meta-Llama-3-8B",)
BATCH = "input.batchSize"
PRECISION = "training.precision"
OPTIMIZER = "training.optimizer"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (IMAGENET, {"model.name": "resnet18", BATCH: 256, PRECISION: "fp32"}),
        ((*IMAGENET, "-a", "vgg16", "-b", "64"), {"model.name": "vgg16", BATCH: 64}),
        ((*IMAGENET, "--arch=vgg16", "--batch-size=64"), {"model.name": "vgg16", BATCH: 64}),
        ((*IMAGENET, "-avgg16", "-b64"), {"model.name": "vgg16", BATCH: 64}),
        ((*IMAGENET, "-b", "64", "-b", "32"), {BATCH: 32}),
        ((*IMAGENET, "--batch_size", "64", "--batch", "16"), {BATCH: 16}),
        (
            IMAGENET,
            {
                "model.source": "torchvision",
                "input.imageSize": [3, 224, 224],
                OPTIMIZER: {"name": "sgd", "momentum": 0.9, "weightDecay": 1e-4},
            },
        ),
        ((*IMAGENET, "--momentum=0", "--wd=0"), {OPTIMIZER: {"name": "sgd", "momentum": 0.0,
                                                              "weightDecay": 0.0}}),
        (VISION, {"model.name": "resnet18", BATCH: 32, PRECISION: "fp32"}),
        (
            (*VISION, "--model", "vit_b_16", "-b", "64", "--amp", "--train-crop-size", "176"),
            {
                "model.name": "vit_b_16",
                BATCH: 64,
                PRECISION: "amp-fp16",
                "input.imageSize": [3, 176, 176],
            },
        ),
        (
            (*VISION, "--model-ema", "--clip-grad-norm=1", "--opt=AdamW", "--label-smoothing=0.1"),
            {
                "training.ema": True,
                "training.clipGradNorm": True,
                OPTIMIZER: {"name": "adamw", "weightDecay": 1e-4},
                "training.labelSmoothing": 0.1,
            },
        ),
        (
            (*VISION, "--opt=sgd_nesterov"),
            {OPTIMIZER: {"name": "sgd", "momentum": 0.9, "nesterov": True, "weightDecay": 1e-4}},
        ),
        (
            TIMM,
            {
                "model.source": "timm",
                "model.name": "resnet50",
                BATCH: 128,
                "input.imageSize": None,
                "input.prefetchBatches": 1,
                OPTIMIZER: {"name": "sgd", "momentum": 0.9, "nesterov": True, "weightDecay": 2e-5},
            },
        ),
        (
            (*TIMM, "--model=convnext_tiny", "--amp", "--amp-dtype", "bfloat16", "--img-size=288"),
            {PRECISION: "amp-bf16", "input.imageSize": [3, 288, 288]},
        ),
        (
            (*TIMM, "/data", "--input-size", "3", "192", "192", "--amp", "--num-classes", "10"),
            {
                PRECISION: "amp-fp16",
                "input.imageSize": [3, 192, 192],
                "model.numLabels": 10,
            },
        ),
        (
            (*TIMM, "--grad-checkpointing", "--channels-last", "--no-prefetcher", "--opt=adamw"),
            {
                "training.gradientCheckpointing": "full",
                "runtime.memoryFormat": "channels_last",
                "input.prefetchBatches": None,
                OPTIMIZER: {"name": "adamw", "weightDecay": 2e-5},
            },
        ),
        (CLM, {"model.task": "causal-lm", BATCH: 8, "input.sequenceLength": 1024}),
        (
            (*CLM, "--per-device-train-batch-size", "2", "--block_size=512",
             "--gradient_accumulation_steps=4", "--gradient_checkpointing"),
            {
                BATCH: 2,
                "input.sequenceLength": 512,
                "training.gradientAccumulationSteps": 4,
                "training.gradientCheckpointing": "full",
            },
        ),
        ((*CLM, "--gradient_checkpointing", "False"), {"training.gradientCheckpointing": "none"}),
        (CLM, {OPTIMIZER: {"name": "adamw", "fused": True}, "training.keepOutputs": False}),
        ((*CLM, "--optim=adamw_bnb_8bit"), {OPTIMIZER: {"name": "adamw", "bits": 8}}),
        (
            (*CLM, "--optim", "paged_adamw_8bit"),
            {OPTIMIZER: {"name": "adamw", "paged": True, "bits": 8}},
        ),
        ((*CLM, "--optim", "galore_adamw"), {OPTIMIZER: {"name": "galore_adamw"}}),
        (
            GLUE,
            {"model.task": "sequence-classification", "input.sequenceLength": 128,
             PRECISION: "fp32"},
        ),
        ((*GLUE, "--task_name", "MNLI"), {"model.numLabels": 3}),
        ((*GLUE, "--task_name=stsb"), {"model.numLabels": 1, "model.task": "regression"}),
        ((*GLUE, "--bf16"), {PRECISION: "amp-bf16"}),
        ((*GLUE, "--fp16", "True"), {PRECISION: "amp-fp16"}),
        ((*GLUE, "--fp16", "False"), {PRECISION: "fp32"}),
        ((*GLUE, "--tf32", "true"), {PRECISION: "tf32"}),
        ((*GLUE, "--pad_to_max_length", "False"), {"input.padding": "longest"}),
        ((*GLUE, "--do_eval", "--per_device_eval_batch_size=64"), {
            "training.evaluation": {"batchSize": 64}}),
        ((*CLM[:3], *LLAMA, "--bf16"), {PRECISION: "bf16"}),
        ((*CLM[:3], *LLAMA, "--bf16", "--torch_dtype=float32"), {PRECISION: "amp-bf16"}),
        ((*CLM[:3], *LLAMA, "--dtype", "float16"), {PRECISION: "fp16"}),
        (
            ("python", "run_mlm.py", "--do_train", "--model_type=bert"),
            {"model.config": {"model_type": "bert"}, PRECISION: "fp32",
             "input.sequenceLength": None},
        ),
        (
            ("python", "finetune.py", "--model_name_or_path=org/x",
             "--per_device_train_batch_size=1", "--max_length=2048"),
            {"model.task": None, BATCH: 1, "input.sequenceLength": 2048, PRECISION: None},
        ),
        (
            ("python", "run_glue_no_trainer.py", "--model_name_or_path=org/x"),
            {OPTIMIZER: {"name": "adamw"}, "training.keepOutputs": None},
        ),
        (
            ("accelerate", "launch", "--mixed_precision=fp16", *GLUE[1:]),
            {PRECISION: "amp-fp16"},
        ),
        (
            (*CLM, "--use_peft", "--lora_r=8", "--lora_target_modules", "q_proj", "v_proj"),
            {
                "adapter": {
                    "type": "lora",
                    "rank": 8,
                    "alpha": 32,
                    "dropout": 0.05,
                    "targetModules": ["q_proj", "v_proj"],
                }
            },
        ),
        (
            (*CLM, "--load_in_4bit", "--use_bnb_nested_quant"),
            {"quantization": {"bits": 4, "scheme": "nf4", "doubleQuant": True}},
        ),
        (
            ("torchrun", "--nproc_per_node=gpu", *CLM[1:], "--fsdp", "full_shard offload"),
            {"parallelism": {"strategy": "fsdp", "offload": "parameters", "dataParallel": 1}},
        ),
    ],
)  # fmt: skip
def test_flags_and_defaults(words: tuple[str, ...], expected: dict[str, Any]) -> None:
    """What is said is read; what is not is the script's own default or left open."""
    reading = read_args(*words)

    assert reading.unknowns == ()
    assert found(reading, *expected) == expected


@pytest.mark.parametrize(
    ("words", "gpus", "expected"),
    [
        (("-b", "256"), 4, {BATCH: 64, "parallelism.strategy": "dp"}),
        (("-b", "250"), 4, {BATCH: 63, "parallelism.strategy": "dp"}),
        (("-b", "256", "--gpu", "0"), 4, {BATCH: 256, "parallelism.strategy": "none"}),
        (
            ("-b", "250", "--multiprocessing-distributed", "--world-size", "2", "--rank", "0"),
            4,
            {BATCH: 62, "parallelism.strategy": "ddp", "parallelism.dataParallel": 8},
        ),
    ],
)
def test_imagenet_divides_the_batch(
    words: tuple[str, ...], gpus: int, expected: dict[str, Any]
) -> None:
    """One process scatters in chunks, rounding up; spawned processes round down."""
    reading = read_args(*IMAGENET, *words, gpus=gpus)

    assert found(reading, *expected) == expected


def test_elastic_imagenet_does_not_divide_the_batch() -> None:
    """torchelastic's main.py takes the batch of one process; its URL or a launcher tells it."""
    url = "https://raw.githubusercontent.com/pytorch/elastic/master/examples/imagenet/main.py"
    line = "torchrun --nproc_per_node=8 /w/imagenet.py -a resnet18 -b 32"

    fetched = read_args("bash", "-c", f"wget {url} -O /w/imagenet.py; {line}", gpus=8)
    likely = read_args("bash", "-c", line, gpus=8)
    unclear = read_args("bash", "-c", f"{line} --pretrained", gpus=8)

    assert found(fetched, BATCH, "parallelism.dataParallel") == {
        BATCH: 32,
        "parallelism.dataParallel": 8,
    }
    assert found(likely, BATCH) == {BATCH: 32}
    assert fetched.is_certain
    assert not likely.is_certain
    assert codes(unclear) == [ReasonCode.NO_BATCH]


@pytest.mark.parametrize(
    ("words", "source"),
    [
        (("--model=resnet50", "--data-path=/d", "-b=64"), "torchvision"),
        (("--model=resnet50", "--data-dir=/d", "-b=64"), "timm"),
        (("/d", "--model=vit_base_patch16_224.augreg_in1k"), "timm"),
        (("--model=resnet50", "--batch-size=64", "--amp"), None),
        (("--model=resnet50", "--data-path=/d", "--my-flag=1"), None),
        (("--weights=yolov5s.pt", "--img=640", "--batch-size=16"), "ultralytics"),
        (("--weights=best.pt", "--img=640", "--batch-size=16"), None),
    ],
)
def test_whose_train_py_it_is(words: tuple[str, ...], source: str | None) -> None:
    """`train.py` is nobody's until its flags or its folder say whose."""
    reading = read_args("python", "/work/train.py", *words)

    assert found(reading, "model.source") == {"model.source": source}
    assert (reading.spec is None) == (source is None)


@pytest.mark.parametrize(
    ("directory", "source"),
    [("/src/vision/references/classification", "torchvision"), ("/src/timm", "timm")],
)
def test_the_folder_says_whose_it_is(directory: str, source: str) -> None:
    """A working directory is as good as a path."""
    reading = read(job(container("python", "train.py", "--model=resnet50", workingDir=directory)))

    assert found(reading, "model.source") == {"model.source": source}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((*CLM[:3], "--model_name_or_path=/models/llama"), ReasonCode.NO_MODEL),
        ((*CLM[:3], "--model_name_or_path=s3://b/llama"), ReasonCode.NO_MODEL),
        (("python", "run_clm.py", "--do_train", "--per_device_train_batch_size=1"), "no-model"),
        ((*CLM, "--auto_find_batch_size"), ReasonCode.NO_BATCH),
        ((*CLM, "--per_device_train_batch_size=many"), ReasonCode.NO_BATCH),
        ((*CLM, "--per_device_train_batch_size=0"), ReasonCode.NO_BATCH),
        ((*CLM[:2], *CLM[3:]), ReasonCode.UNSUPPORTED),
        ((*CLM, "--deepspeed=ds.json"), ReasonCode.UNSUPPORTED),
        ((*CLM, "--fsdp", "full_shard", "--fsdp_config", "x.json"), ReasonCode.UNSUPPORTED),
        (("python", "dpo.py", *CLM[3:], "--per_device_train_batch_size=1"), "unsupported"),
        (("trl", "rloo", *CLM[3:]), ReasonCode.UNSUPPORTED),
        ((*CLM, "--block_size=long"), ReasonCode.INVALID_SPEC),
        ((*TIMM, "--config=x.yaml"), ReasonCode.DOCUMENT),
        ((*TIMM, "--aug-splits=3"), ReasonCode.UNSUPPORTED),
        ((*TIMM, "--img-size=big"), ReasonCode.INVALID_SPEC),
    ],
)
def test_what_changes_memory_and_is_not_read_is_a_gap(words: tuple[str, ...], code: str) -> None:
    """Never ignored: a spec is given only if nothing of weight was left out."""
    reading = read_args(*words)

    assert reading.spec is None
    assert codes(reading) == [code]
    assert reading.unknowns[0].hint


def test_old_libraries_change_defaults() -> None:
    """transformers 4 loads in fp32 whatever is stored; torch before 2.8 has no fused default."""
    line = "pip install transformers==4.44.2 torch==2.4.1; python run_clm.py --do_train --bf16 "
    reading = read_args("bash", "-c", line + LLAMA[0])

    assert found(reading, PRECISION, OPTIMIZER) == {
        PRECISION: "amp-bf16",
        OPTIMIZER: {"name": "adamw"},
    }


def test_sources_name_the_place_of_each_value() -> None:
    """A flag by its spelling and field, a default by its script."""
    body = container("-b", "64", command=["python", "/imagenet/main.py", "-a", "vgg16"])
    sources = read(job(body)).sources

    assert sources["model.name"] == "containers[0].command -a"
    assert sources["input.batchSize"] == "containers[0].args -b"
    assert sources["input.imageSize"] == "default of imagenet main.py"


ENV = {
    "MODEL_NAME": "google/gemma-2b",
    "TRAIN_BATCH_SIZE": "1",
    "MAX_SEQ_LENGTH": "512",
    "GRADIENT_ACCUMULATION_STEPS": "2",
    "LORA_R": "8",
}


def test_variables_speak_for_a_program_in_the_image() -> None:
    """Their names tell model, batch, length and adapter; what they do not tell is a warning."""
    reading = read_args(env=ENV)

    assert reading.spec is not None
    assert found(reading, "model.name", BATCH, "input.sequenceLength", "adapter") == {
        "model.name": "google/gemma-2b",
        BATCH: 1,
        "input.sequenceLength": 512,
        "adapter": {"type": "lora", "rank": 8},
    }
    assert reading.sources[BATCH] == "env TRAIN_BATCH_SIZE"
    assert "not visible" in reading.warnings[0]


@pytest.mark.parametrize(
    ("env", "gpus", "code"),
    [
        ({**ENV, "MODEL_NAME": "/models/gemma"}, 1, ReasonCode.NO_MODEL),
        ({**ENV, "MODEL_NAME": "${MODEL}"}, 1, ReasonCode.TEMPLATE),
        ({"MODEL_NAME": "google/gemma-2b", "BATCH_SIZE": "8"}, 2, ReasonCode.NO_COMMAND),
        ({"MODEL_NAME": "google/gemma-2b"}, 1, ReasonCode.NO_COMMAND),
    ],
)
def test_variables_that_do_not_suffice(env: dict[str, str], gpus: int, code: ReasonCode) -> None:
    """A path, a template, or a batch that may be of all GPUs together is no answer."""
    reading = read_args(env=env, gpus=gpus)

    assert reading.spec is None
    assert code in codes(reading)
