"""Bad values in programs for pictures: a named reason each, never an exception."""

from __future__ import annotations

import pytest

from tests.admission.detect.jobs import found, read_script

PROGRAMS = (
    ("python tf_cnn_benchmarks.py --model=resnet50", ("batch_size", "num_gpus", "momentum")),
    ("python /nvidia-examples/cnn/resnet.py --layers=50", ("batch_size", "layers", "precision")),
    (
        "python /mxnet/image-classification/train_imagenet.py --gpus 0",
        ("batch-size", "num-layers", "image-shape", "gpus", "network", "mom", "dtype"),
    ),
    ("python train_imagenet_byteps.py", ("batch-size", "image-shape", "num-layers")),
    ("python /rn50v1.5/train.py", ("batch-size", "gpus", "kv-store", "arch")),
    ("python /gluoncv/train_imagenet.py --num-gpus 1 --model x", ("batch-size", "input-size")),
    ("python mxnet_imagenet_resnet50.py", ("batch-size", "model", "wd")),
    ("python pytorch_synthetic_benchmark.py", ("batch-size", "model")),
    ("python pytorch_imagenet_resnet50.py", ("batch-size", "batches-per-allreduce", "momentum")),
    ("python tensorflow2_synthetic_benchmark.py", ("batch-size", "model")),
    ("python /resnet50/src/resnet50.py", ("batch-size", "train-crop-size")),
    ("python /yolov5/train.py", ("batch-size", "imgsz", "weights", "device", "cfg", "optimizer")),
    ("python /yolov5/classify/train.py", ("batch-size", "imgsz", "model", "optimizer")),
    ("python /references/detection/train.py", ("batch-size", "model", "opt", "weight-decay")),
    ("python /references/segmentation/train.py", ("batch-size", "model")),
    ("python /references/video_classification/train.py", ("batch-size", "clip-len")),
    ("python /references/optical_flow/train.py", ("batch-size", "train-dataset", "model")),
    ("python /references/similarity/train.py", ("labels-per-batch", "samples-per-label")),
    ("python /deit/main.py", ("batch-size", "model", "input-size", "opt", "clip-grad")),
    ("python /mae/main_finetune.py", ("batch_size", "model", "accum_iter", "nb_classes")),
    ("python /convnext/main.py", ("batch_size", "update_freq", "use_amp", "smoothing")),
    ("python /swin-transformer/main.py", ("cfg", "batch-size", "accumulation-steps", "opts")),
    (
        "python /workspace/rn50/main.py",
        ("batch-size", "arch", "optimizer-batch-size", "image-size", "optimizer"),
    ),
    ("python /workspace/rn50/launch.py", ("model", "platform", "precision", "nproc_per_node")),
    ("python main.py --use_tf_amp", ("batch_size", "arch", "synthetic_data_size", "mode")),
    (
        "python /workspace/bert/run_pretraining.py --config_file bert_configs/base.json",
        ("train_batch_size", "gradient_accumulation_steps", "max_seq_length", "config_file"),
    ),
    ("python /workspace/ssd/main.py", ("batch-size", "eval-batch-size")),
    ("python main_amp.py", ("batch-size", "arch", "opt-level")),
    ("python /ffcv/train_imagenet.py", ("training.batch_size", "dist.world_size", "config-file")),
    ("python train_net.py", ("num-gpus", "num-machines", "config-file")),
    ("python /mmdet/tools/train.py x.py", ("cfg-options",)),
    (
        "python /official/vision/train.py --experiment=resnet_imagenet",
        ("params_override", "config_file", "experiment"),
    ),
    ("python /timm/train.py", ("config", "batch-size", "img-size")),
)
VALUES = (
    "''",
    "null",
    "-3",
    "1e400",
    "nan",
    "9999999999999999999999999",
    "$UNSET",
    "'{{workflow.value}}'",
    "'[['",
    "'a=b,=,c'",
    "'x: [1'",
    "'é ,0'",
)


@pytest.mark.parametrize(("line", "flags"), PROGRAMS)
def test_bad_values_are_named_or_harmless(line: str, flags: tuple[str, ...]) -> None:
    """No value raises; where the spec is missing, a reason with a place says why."""
    for flag in flags:
        for value in VALUES:
            reading = read_script(f"{line} --{flag} {value}", gpus=2)

            assert (reading.spec is None) == bool(reading.unknowns or reading.skip)
            assert all(finding.path and finding.reason for finding in reading.unknowns)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", ["model", "batch", "imgsz", "device", "nbs", "optimizer", "cfg"])
def test_bad_values_of_pairs_are_named_or_harmless(key: str, value: str) -> None:
    """`key=value` is no different."""
    reading = read_script(f"yolo train model=yolo11n.pt {key}={value}", gpus=2)

    assert (reading.spec is None) == bool(reading.unknowns or reading.skip)


@pytest.mark.parametrize(("line", "flags"), PROGRAMS)
def test_a_flag_without_its_value_is_named_or_harmless(line: str, flags: tuple[str, ...]) -> None:
    """The command line may end where a value should be."""
    for flag in flags:
        reading = read_script(f"{line} --{flag}")

        assert (reading.spec is None) == bool(reading.unknowns or reading.skip)


def test_an_unresolved_momentum_is_not_none() -> None:
    """Without momentum SGD keeps nothing, so what is not known counts as the default."""
    for line in (
        "python /mxnet/image-classification/train_imagenet.py --gpus 0 --mom $MOM",
        "python /references/detection/train.py --momentum $MOM",
    ):
        reading = read_script(line)

        assert found(reading, "training.optimizer.momentum") == {"training.optimizer.momentum": 0.9}
