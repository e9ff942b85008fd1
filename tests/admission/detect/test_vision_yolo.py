"""YOLO programs: a batch over all processes, accumulation, and whose weights they are."""

from __future__ import annotations

from typing import Any

import pytest

from admission.codes import ReasonCode
from admission.detect.scripts.yolo_models import model_of
from estimator.spec import ModelSource, parse_spec
from tests.admission.detect.jobs import codes, config_map, container, found, job, read, read_script

MODEL, BATCH, SIZE = "model.name", "input.batchSize", "input.imageSize"
STEPS, OPTIMIZER = "training.gradientAccumulationSteps", "training.optimizer"
STRATEGY, DEGREE = "parallelism.strategy", "parallelism.dataParallel"
SGD = {"name": "sgd", "momentum": 0.937, "nesterov": True}
V5 = "python /src/yolov5/train.py --data coco.yaml "


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("yolov5s.pt", "yolov5s"),
        ("/weights/yolov5x6.pt", "yolov5x6"),
        ("models/yolov5m-seg.yaml", "yolov5m-seg"),
        ("cfg/training/yolov7-tiny.yaml", "yolov7-tiny"),
        ("yolov7_training.pt", None),
        ("yolo11n-cls.pt", "yolo11n-cls"),
        ("yolov8n-pose-p6.yaml", "yolov8n-pose-p6"),
        ("yolov8n", "yolov8n"),
        ("rtdetr-l.pt", "rtdetr-l"),
        ("yolov8n-mine.pt", None),
        ("runs/train/exp/weights/best.pt", None),
        ("last.pt", None),
        ("yolo.pt", None),
        ("", None),
    ],
)
def test_only_published_names_are_models(text: str, name: str | None) -> None:
    """A file of one's own may hold any model."""
    assert model_of(text) == name


@pytest.mark.parametrize(
    ("line", "gpus", "expected"),
    [
        (
            V5 + "--weights yolov5s.pt",
            1,
            {
                "framework": "pytorch",
                "model": {"source": "ultralytics", "name": "yolov5s"},
                BATCH: 16,
                SIZE: [3, 640, 640],
                "training.precision": "amp-fp16",
                "training.ema": True,
                STEPS: 4,
                OPTIMIZER: SGD,
                "training.evaluation": {"batchSize": 32},
                STRATEGY: "none",
            },
        ),
        (
            V5 + "--weights '' --cfg models/yolov5m.yaml --batch-size 48 --img 1280 --noval",
            1,
            {
                MODEL: "yolov5m",
                BATCH: 48,
                SIZE: [3, 1280, 1280],
                STEPS: 1,
                "training.evaluation": None,
            },
        ),
        (
            "torchrun --nproc_per_node=4 yolov5/train.py --batch-size 64 --optimizer AdamW",
            4,
            {MODEL: "yolov5s", BATCH: 16, STEPS: 1, OPTIMIZER: {"name": "adamw"}, DEGREE: 4},
        ),
        (V5 + "--batch 64", 4, {BATCH: 16, STRATEGY: "dp", DEGREE: 4}),
        (V5 + "--batch 64 --device 0", 4, {BATCH: 64, STRATEGY: "none"}),
        (V5 + "--batch 64 --device 0,1", 4, {BATCH: 32, STRATEGY: "dp", DEGREE: 2}),
        (
            "python -m torch.distributed.launch --nproc_per_node 2 /yolov7/train.py --adam "
            "--img-size 640 640 --batch-size 32 --cfg cfg/training/yolov7.yaml --weights ''",
            2,
            {MODEL: "yolov7", BATCH: 16, STEPS: 2, OPTIMIZER: {"name": "adam"}, DEGREE: 2},
        ),
        (
            "python train_aux.py --weights yolov7-w6.pt --img-size 1280 1280",
            1,
            {MODEL: "yolov7-w6", SIZE: [3, 1280, 1280]},
        ),
        (
            "python /yolov5/classify/train.py --model yolov5s-cls.pt --batch-size 32",
            1,
            {MODEL: "yolov5s-cls", BATCH: 32, SIZE: [3, 224, 224], OPTIMIZER: {"name": "adam"}},
        ),
        (
            "python /yolov5/classify/train.py --model resnet50",
            1,
            {"model": {"source": "torchvision", "name": "resnet50"}, BATCH: 64},
        ),
        (
            "cd /usr/src/app && python train.py --weights yolov5n.pt --batch 128",
            1,
            {MODEL: "yolov5n", BATCH: 128, STEPS: 1},
        ),
    ],
)
def test_yolov5_and_its_like(line: str, gpus: int, expected: dict[str, Any]) -> None:
    """As many batches make a step as come near 64 pictures."""
    reading = read_script(line, gpus=gpus)

    assert found(reading, *expected) == expected
    assert reading.spec is not None


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (V5 + "--batch-size -1", ReasonCode.NO_BATCH),
        (V5 + "--weights best.pt", ReasonCode.NO_MODEL),
        (V5 + "--weights $WEIGHTS", ReasonCode.UNRESOLVED_VARIABLE),
        ("python /usr/src/app/train.py --batch-size 32 --data mine.yaml", ReasonCode.NO_MODEL),
        ("python /mine/classify/train.py --model yolov5s-cls.pt", ReasonCode.NO_MODEL),
        ("yolo train model=yolo11n.pt batch=-1", ReasonCode.NO_BATCH),
        ("yolo train model=yolo11n.pt batch=0.7", ReasonCode.NO_BATCH),
        ("yolo train model=runs/best.pt", ReasonCode.NO_MODEL),
        ("yolo train data=coco8.yaml", ReasonCode.NO_MODEL),
        ("yolo train model=yolo11n.pt batch=many", ReasonCode.NO_BATCH),
        ("yolo train model=yolo11n.pt imgsz=big", ReasonCode.INVALID_SPEC),
        ("yolo train model=yolo11n.pt cfg=/c/mine.yaml", ReasonCode.DOCUMENT),
    ],
)
def test_what_is_open_is_named(line: str, code: str) -> None:
    """A batch that fits itself to the card, weights of one's own, files in the image."""
    reading = read_script(line)

    assert reading.spec is None
    assert codes(reading) == [code]
    assert reading.unknowns[0].hint


@pytest.mark.parametrize(
    ("line", "gpus", "expected"),
    [
        (
            "yolo detect train data=coco8.yaml model=yolo11n.pt epochs=10 batch=32 imgsz=320",
            1,
            {
                "model": {"source": "ultralytics", "name": "yolo11n"},
                BATCH: 32,
                SIZE: [3, 320, 320],
                "training.precision": "amp-fp16",
                STEPS: 2,
                OPTIMIZER: None,
                "training.ema": True,
                "training.evaluation": {"batchSize": 64},
            },
        ),
        (
            "yolo train model=yolov8x-seg.pt device=0,1,2,3 batch=64 optimizer=SGD amp=False",
            4,
            {
                MODEL: "yolov8x-seg",
                BATCH: 16,
                "training.precision": "fp32",
                "training.optimizer.name": "sgd",
                STRATEGY: "ddp",
                DEGREE: 4,
            },
        ),
        ("yolo train model=yolov8n.yaml device=[0,1] batch=8 val=False", 2, {BATCH: 4, DEGREE: 2}),
        ("yolo task=detect mode=train model=yolov8n.pt", 4, {BATCH: 16, STRATEGY: "none"}),
        ("yolo classify train model=yolo11n-cls.pt", 1, {SIZE: [3, 224, 224]}),
        ("python -m ultralytics train model=yolo12s.pt nbs=128", 1, {STEPS: 8}),
    ],
)
def test_ultralytics(line: str, gpus: int, expected: dict[str, Any]) -> None:
    """It starts one process for each card that `device` lists, and divides the batch."""
    reading = read_script(line, gpus=gpus)

    assert found(reading, *expected) == expected
    assert reading.spec is not None


def test_the_automatic_optimizer_is_a_doubt() -> None:
    """SGD or AdamW: the number of steps decides, and that is the data's."""
    assert not read_script("yolo train model=yolo11n.pt").is_certain
    assert read_script("yolo train model=yolo11n.pt optimizer=AdamW").is_certain


@pytest.mark.parametrize("mode", ["predict", "val", "export"])
def test_modes_that_train_nothing_are_skipped(mode: str) -> None:
    """`yolo predict` uses the card and trains nothing."""
    assert read_script(f"yolo {mode} model=yolo11n.pt").skip == ReasonCode.NO_TRAINING


def test_a_mounted_configuration_goes_under_the_command_line() -> None:
    """`cfg=` names a file with defaults of this run."""
    body = container(
        "yolo",
        "train",
        "cfg=/c/run.yaml",
        "batch=8",
        volumeMounts=[{"name": "v", "mountPath": "/c"}],
    )
    obj = job(body)
    obj["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "runs"}}]
    text = "model: yolo11s.pt\nbatch: 64\nimgsz: 800\noptimizer: null\n"

    reading = read(obj, documents=config_map("runs", run__yaml=text))

    assert found(reading, MODEL, BATCH, SIZE) == {
        MODEL: "yolo11s",
        BATCH: 8,
        SIZE: [3, 800, 800],
    }


def test_the_spec_knows_the_source() -> None:
    """A JobSpec may name a model of Ultralytics; whether it is estimated is another matter."""
    spec = parse_spec(
        {
            "framework": "pytorch",
            "model": {"source": "ultralytics", "name": "yolo11n"},
            "input": {"batchSize": 1},
        }
    )

    assert spec.model.source is ModelSource.ULTRALYTICS
