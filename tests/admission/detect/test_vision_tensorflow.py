"""TensorFlow's programs for pictures: benchmarks, NVIDIA's, Horovod's, the Model Garden's."""

from __future__ import annotations

from typing import Any

import pytest

from admission.codes import ReasonCode
from tests.admission.detect.jobs import codes, config_map, container, found, job, read, read_script

MODEL, BATCH, SIZE = "model.name", "input.batchSize", "input.imageSize"
PRECISION, OPTIMIZER = "training.precision", "training.optimizer"
STRATEGY, DEGREE = "parallelism.strategy", "parallelism.dataParallel"
BENCHMARK = "python tf_cnn_benchmarks.py --model=resnet50 "


@pytest.mark.parametrize(
    ("flags", "gpus", "expected"),
    [
        (
            "--batch_size=256 --use_fp16 --optimizer=momentum --nodistortions",
            1,
            {
                "framework": "tensorflow",
                "model.source": "keras",
                MODEL: "resnet50",
                BATCH: 256,
                SIZE: [3, 224, 224],
                PRECISION: "amp-fp16",
                OPTIMIZER: {
                    "name": "sgd",
                    "momentum": 0.9,
                    "nesterov": True,
                    "weightDecay": 0.00004,
                },
                "training.gradientCheckpointing": "none",
                "training.gradientAccumulationSteps": 1,
                STRATEGY: "none",
            },
        ),
        ("--use_fp16=false", 1, {PRECISION: "fp32", BATCH: 64}),
        ("--use_fp16 --fp16_vars", 1, {PRECISION: "fp16"}),
        ("--batch_size=0 --model=vgg16", 1, {MODEL: "vgg16", BATCH: 64}),
        ("--model=inception3", 1, {BATCH: 32, SIZE: [3, 299, 299]}),
        (
            "--model=resnet56 --data_name=cifar10",
            1,
            {MODEL: "resnet56", BATCH: 128, SIZE: [3, 32, 32]},
        ),
        ("--num_gpus=4 --variable_update=replicated", 4, {STRATEGY: "ddp", DEGREE: 4}),
        ("--num_gpus=2 --worker_hosts=a:1,b:1,c:1", 2, {STRATEGY: "ddp", DEGREE: 6}),
        ("--optimizer=rmsprop", 1, {f"{OPTIMIZER}.name": "rmsprop", f"{OPTIMIZER}.momentum": 0.9}),
        (
            "--data_format=NHWC --xla --allow_growth",
            1,
            {
                "runtime.memoryFormat": "channels_last",
                "training.compile": True,
                "runtime.allowGrowth": True,
            },
        ),
        ("--forward_only", 1, {"phase": "infer"}),
    ],
)
def test_tf_cnn_benchmarks(flags: str, gpus: int, expected: dict[str, Any]) -> None:
    """The batch is one of a GPU and by default the model's own."""
    reading = read_script(BENCHMARK + flags, gpus=gpus)

    assert found(reading, *expected) == expected
    assert reading.spec is not None


def test_workers_that_nobody_lists_are_a_doubt() -> None:
    """Volcano's variable counts them; without it the number of replicas is open."""
    line = f"{BENCHMARK}--num_gpus=2 --worker_hosts=$HOSTS"
    counted = read_script(line, gpus=2, env={"VC_WORKER_NUM": "3"})
    uncounted = read_script(line, gpus=2)

    assert found(counted, STRATEGY, DEGREE) == {STRATEGY: "ddp", DEGREE: 6}
    assert found(uncounted, STRATEGY) == {STRATEGY: "ddp"}
    assert not uncounted.is_certain


def test_benchmark_without_a_known_batch_is_a_gap() -> None:
    """`trivial`, the default model, has no batch worth a default."""
    reading = read_script("python tf_cnn_benchmarks.py --num_gpus=1")

    assert codes(reading) == [ReasonCode.NO_BATCH]


def test_horovod_counts_processes_not_towers() -> None:
    """mpirun's processes are the replicas, in the benchmark and in NVIDIA's resnet.py."""
    launch = "mpirun -np 4 --allow-run-as-root "
    lines = (
        launch + BENCHMARK + "--variable_update=horovod",
        launch + "python /workspace/nvidia-examples/cnn/resnet.py --layers=50",
        launch + "python tensorflow2_synthetic_benchmark.py",
    )
    for line in lines:
        reading = read_script(line, gpus=4)

        assert found(reading, STRATEGY, DEGREE, "parallelism.implementation") == {
            STRATEGY: "ddp",
            DEGREE: 4,
            "parallelism.implementation": "horovod",
        }


@pytest.mark.parametrize("script", ["tf_cnn_benchmarks.py", "tensorflow2_synthetic_benchmark.py"])
def test_a_run_on_the_cpu_is_no_gpu_training(script: str) -> None:
    """`--device=cpu` and `--no-cuda` leave the card alone."""
    flag = "--device=cpu" if "cnn" in script else "--no-cuda"

    assert read_script(f"python {script} {flag}").skip == ReasonCode.NO_TRAINING


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--layers=50 --batch_size=64", {MODEL: "resnet50", BATCH: 64, PRECISION: "amp-fp16"}),
        ("--layers 101 -b 32 --precision fp32", {MODEL: "resnet101", BATCH: 32, PRECISION: "fp32"}),
        ("--layers=152", {MODEL: "resnet152", BATCH: 256, f"{OPTIMIZER}.momentum": 0.9}),
    ],
)
def test_nvidia_resnet(flags: str, expected: dict[str, Any]) -> None:
    """fp16 is the default; variables stay fp32."""
    reading = read_script(f"python /workspace/nvidia-examples/cnn/resnet.py {flags}")

    assert found(reading, *expected) == expected


def test_resnet_py_elsewhere_names_no_model() -> None:
    """A file name is no model, and a depth that the script lacks is a gap."""
    elsewhere = read_script("python resnet.py --layers=50 --batch_size=64")
    deep = read_script("python /nvidia-examples/cnn/resnet.py --layers=51")

    assert codes(elsewhere) == [ReasonCode.NO_MODEL]
    assert codes(deep) == [ReasonCode.NO_MODEL]


def test_horovod_samples_take_names_of_keras() -> None:
    """`ResNet101` is resnet101; memory grows as needed."""
    reading = read_script("python tensorflow2_synthetic_benchmark.py --model ResNet101")

    assert found(reading, "model", BATCH, "runtime.allowGrowth", OPTIMIZER) == {
        "model": {"source": "keras", "name": "resnet101"},
        BATCH: 32,
        "runtime.allowGrowth": True,
        OPTIMIZER: {"name": "sgd"},
    }


def test_networks_of_a_sample_s_own_are_named() -> None:
    """MNIST samples train what no zoo has: one finding, with the framework."""
    reading = read_script("python tensorflow2_keras_mnist.py")

    assert found(reading, "framework", "model") == {"framework": "tensorflow", "model": None}
    assert codes(reading) == [ReasonCode.UNSUPPORTED]


GARDEN = "python /models/official/vision/train.py --mode=train --experiment="


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("resnet_imagenet", {MODEL: "resnet50", BATCH: 512, PRECISION: "fp32"}),
        (
            "resnet_imagenet --config_file=a/imagenet_resnet50_gpu.yaml",
            {BATCH: 256, PRECISION: "amp-fp16", "training.labelSmoothing": 0.1},
        ),
        (
            "resnet_imagenet --params_override=runtime.num_gpus=4,"
            "task.model.backbone.resnet.model_id=101,task.train_data.global_batch_size=64",
            {MODEL: "resnet101", BATCH: 16, STRATEGY: "mirrored", DEGREE: 4},
        ),
        (
            "resnet_imagenet --params_override='runtime: {mixed_precision_dtype: bfloat16}'",
            {PRECISION: "amp-bf16"},
        ),
        (
            "mobilenet_imagenet",
            {MODEL: "mobilenetv2", f"{OPTIMIZER}.name": "rmsprop", SIZE: [3, 224, 224]},
        ),
    ],
)
def test_model_garden(flags: str, expected: dict[str, Any]) -> None:
    """The global batch is of all replicas; overrides go over files over the experiment."""
    reading = read_script(GARDEN + flags, gpus=8)

    assert found(reading, *expected) == expected
    assert reading.spec is not None


def test_model_garden_reads_a_mounted_file_and_names_one_it_cannot_see() -> None:
    """A file in the image may say anything, so no default stands for it."""
    volume = {"name": "v", "configMap": {"name": "garden"}}
    line = GARDEN + "resnet_imagenet --config_file=/c/mine.yaml"
    body = container("bash", "-c", line, gpus=8, volumeMounts=[{"name": "v", "mountPath": "/c"}])
    obj = job(body)
    obj["spec"]["template"]["spec"]["volumes"] = [volume]
    text = "task: {train_data: {global_batch_size: 80}}\nruntime: {num_gpus: 8}\n"

    seen = read(obj, documents=config_map("garden", mine__yaml=text))
    unseen = read_script(line, gpus=8)

    assert found(seen, BATCH, DEGREE) == {BATCH: 10, DEGREE: 8}
    assert codes(unseen) == [ReasonCode.DOCUMENT]
    assert found(unseen, "input", "parallelism") == {"input": None, "parallelism": None}


def test_experiments_of_other_tasks_are_named() -> None:
    """Detection is not read."""
    assert codes(read_script(GARDEN + "retinanet_resnetfpn_coco", gpus=8)) == ["unsupported"]


KERAS = "python train.py --model ResNet50 --batch_size 64"


def test_a_keras_script_needs_something_that_says_tensorflow() -> None:
    """The image, an installed package or the operator; the reading is never certain."""
    silent = read_script(KERAS)
    by_image = read_script(KERAS, image="tensorflow/tensorflow:2.15.0-gpu")
    by_package = read_script(f"pip install tensorflow==2.15.0 && {KERAS}")
    by_operator = read_script(KERAS, env={"TF_CONFIG": "{}"})

    assert silent.spec is None
    for reading in (by_image, by_package, by_operator):
        assert found(reading, "framework", MODEL, BATCH, PRECISION, OPTIMIZER) == {
            "framework": "tensorflow",
            MODEL: "resnet50",
            BATCH: 64,
            PRECISION: None,
            OPTIMIZER: None,
        }
        assert reading.spec is not None
        assert not reading.is_certain


def test_a_keras_script_s_batch_on_several_gpus_is_a_gap() -> None:
    """It may be of one GPU or of all; a flag that says which one is read."""
    image = "tensorflow/tensorflow:2.15.0-gpu"
    open_ended = read_script(KERAS, gpus=4, image=image)
    each = read_script(f"{KERAS} --per_gpu_batch_size 16", gpus=4, image=image)

    assert codes(open_ended) == [ReasonCode.NO_BATCH]
    assert found(each, BATCH) == {BATCH: 16}


def test_a_model_that_keras_lacks_is_no_keras_script() -> None:
    """Only names of keras.applications count."""
    line = "python train.py --model my_net --batch_size 64"

    assert codes(read_script(line, image="tensorflow/tensorflow:2.15.0")) == ["no-model"]
