"""MXNet's programs for pictures: over what each of them counts its batch."""

from __future__ import annotations

from typing import Any

import pytest

from admission.codes import ReasonCode
from tests.admission.detect.jobs import codes, found, read_script

MODEL, BATCH, SIZE = "model.name", "input.batchSize", "input.imageSize"
PRECISION, OPTIMIZER = "training.precision", "training.optimizer"
STRATEGY, DEGREE = "parallelism.strategy", "parallelism.dataParallel"
FOLDER = "python /mxnet/example/image-classification/"
SGD = {"name": "sgd", "momentum": 0.9, "weightDecay": 0.0001}


@pytest.mark.parametrize(
    ("line", "gpus", "expected"),
    [
        (
            "train_imagenet.py --gpus 0,1,2,3 --batch-size 256",
            4,
            {
                "framework": "mxnet",
                "model.source": "mxnet",
                MODEL: "resnet50",
                BATCH: 64,
                SIZE: [3, 224, 224],
                PRECISION: "fp32",
                OPTIMIZER: SGD,
                STRATEGY: "ddp",
                DEGREE: 4,
            },
        ),
        (
            "train_imagenet.py --network vgg --num-layers 16 --gpus 0 --dtype float16",
            1,
            {
                MODEL: "vgg16",
                BATCH: 128,
                PRECISION: "fp16",
                "training.masterWeights": True,
                STRATEGY: "none",
            },
        ),
        (
            "train_imagenet.py --network=resnet-v1 --num-layers=101 --gpus=0",
            1,
            {MODEL: "resnet101_v1"},
        ),
        (
            "train_imagenet.py --network inception-v3 --image-shape 3,299,299 --gpus 0",
            1,
            {MODEL: "inception-v3", SIZE: [3, 299, 299]},
        ),
        ("train_cifar10.py --gpus 0,1", 2, {MODEL: "resnet110", BATCH: 64, SIZE: [3, 28, 28]}),
        (
            "train_mnist.py --gpus 0 --network lenet",
            1,
            {MODEL: "lenet", BATCH: 64, SIZE: [1, 28, 28]},
        ),
        (
            "train_imagenet.py --gpus 0 --optimizer nag --mom 0.5",
            1,
            {OPTIMIZER: {**SGD, "momentum": 0.5, "nesterov": True}},
        ),
        (
            "train_imagenet.py --gpus 0,1 --kv-store dist_device_sync --batch-size 64",
            2,
            {BATCH: 32, DEGREE: 6},
        ),
    ],
)
def test_mxnet_counts_over_the_cards_of_a_worker(
    line: str, gpus: int, expected: dict[str, Any]
) -> None:
    """A key-value store of several workers multiplies replicas, never the batch of a card."""
    reading = read_script(f"DMLC_NUM_WORKER=3 {FOLDER}{line}", gpus=gpus)

    assert found(reading, *expected) == expected
    assert reading.spec is not None


def test_without_cards_it_trains_on_the_cpu() -> None:
    """`--gpus` left out or empty is the CPU."""
    for line in ("train_imagenet.py --batch-size 8", "train_mnist.py --gpus ''"):
        assert read_script(FOLDER + line).skip == ReasonCode.NO_TRAINING


def test_cards_that_are_not_resolved_leave_the_batch_open() -> None:
    """The batch is one of all of them, however many they are."""
    reading = read_script(f"{FOLDER}train_imagenet.py --gpus $GPUS --batch-size 512", gpus=8)

    assert codes(reading) == [ReasonCode.UNRESOLVED_VARIABLE]
    assert found(reading, BATCH, "parallelism") == {BATCH: None, "parallelism": None}


def test_flags_alone_are_a_doubt() -> None:
    """`train_imagenet.py` is many people's; flags that only MXNet's has are enough to read it."""
    reading = read_script("python train_imagenet.py --gpus 0 --lr-step-epochs 30,60")

    assert reading.spec is not None
    assert not reading.is_certain


@pytest.mark.parametrize(
    ("line", "gpus", "expected"),
    [
        (
            "bpslaunch python3 /byteps/example/mxnet/train_imagenet_byteps.py --batch-size=32",
            8,
            {MODEL: "resnet50", BATCH: 32, STRATEGY: "ddp", DEGREE: 8, OPTIMIZER: SGD},
        ),
        (
            "mpirun -np 4 python mxnet_imagenet_resnet50.py --batch-size 64 --dtype float16",
            4,
            {MODEL: "resnet50_v1", BATCH: 64, PRECISION: "fp16", OPTIMIZER: SGD, DEGREE: 4},
        ),
        (
            "mpirun -np 2 python train_horovod.py --model ResNeSt50 --input-size 256",
            2,
            {MODEL: "resnest50", SIZE: [3, 256, 256], f"{OPTIMIZER}.nesterov": True},
        ),
        (
            "python /gluon-cv/scripts/classification/imagenet/train_imagenet.py "
            "--model mobilenet1.0 --num-gpus 4 --batch-size 64",
            4,
            {MODEL: "mobilenet1.0", BATCH: 64, STRATEGY: "ddp", DEGREE: 4},
        ),
        (
            "python scripts/classification/cifar/train_cifar10.py --num-gpus 1 "
            "--model cifar_resnet20_v1",
            1,
            {MODEL: "cifar_resnet20_v1", BATCH: 32, SIZE: [3, 32, 32]},
        ),
        (
            "mpirun -np 8 python /rn50v1.5/train.py --kv-store horovod --gpus 0,1,2,3,4,5,6,7 "
            "--batch-size 1536 --dtype float16",
            8,
            {MODEL: "resnet50_v1b", BATCH: 192, PRECISION: "fp16", DEGREE: 8},
        ),
        (
            "python /rn50v1.5/train.py --gpus 0,1 --batch-size 384 --arch resnetv1 --amp",
            2,
            {MODEL: "resnet50_v1", BATCH: 192, PRECISION: "amp-fp16", STRATEGY: "ddp", DEGREE: 2},
        ),
    ],
)
def test_others_count_otherwise(line: str, gpus: int, expected: dict[str, Any]) -> None:
    """BytePS, Horovod and GluonCV count the batch of one device, NVIDIA that of the job."""
    reading = read_script(line, gpus=gpus)

    assert found(reading, *expected) == expected
    assert reading.spec is not None


def test_a_teacher_is_a_second_model() -> None:
    """Distillation puts both on the card."""
    line = (
        "python /gluoncv/train_imagenet.py --model mobilenet1.0 --num-gpus 1 --teacher ResNet152_v1"
    )

    assert found(read_script(line), "model.companions") == {
        "model.companions": [{"source": "mxnet", "name": "resnet152_v1"}]
    }
