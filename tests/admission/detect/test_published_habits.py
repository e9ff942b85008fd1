"""Small things that published manifests do, each once misread."""

from __future__ import annotations

from typing import Any

import pytest

from admission.codes import ReasonCode
from admission.detect import read_unit
from admission.values import Reading
from admission.workloads import read_workload
from tests.admission.detect.jobs import codes, container, found, job, read, read_args, read_script

MODEL, BATCH, DEGREE = "model.name", "input.batchSize", "parallelism.dataParallel"
IMAGENET = "/workspace/elastic/examples/imagenet/main.py"
TF_CNN = "scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py"


def test_a_variable_that_is_known_in_part_is_split_like_any_other() -> None:
    """`$ARGS` with one reference left open is still several words; each says where it stands."""
    reading = read_script(
        'ARGS="\n --nproc_per_node 2 \\\n --node_rank $PET_NODE_RANK --nnodes $N"\n'
        "torchrun $ARGS /imagenet/main.py -a resnet18 -b $B",
        gpus=2,
        env={"N": "4", "B": "32"},
    )

    assert found(reading, MODEL, BATCH, DEGREE) == {MODEL: "resnet18", BATCH: 32, DEGREE: 8}
    assert reading.sources[BATCH] == "containers[0].args -b"
    assert reading.sources[DEGREE] == "containers[0].args --nproc_per_node"


def test_a_reference_with_blanks_in_it_stays_one() -> None:
    """`$(date -u)` is one word of what is not known."""
    reading = read_script(
        'ARGS="-a resnet18 --seed $(date -u +%s) -b 32"\npython /imagenet/main.py $ARGS'
    )

    assert found(reading, MODEL, BATCH) == {MODEL: "resnet18", BATCH: 32}


def _elastic(**fields: Any) -> Reading:
    body = {
        "apiVersion": "elastic.pytorch.org/v1alpha1",
        "kind": "ElasticJob",
        "metadata": {"name": "x"},
        "spec": {
            "replicaSpecs": {
                "Worker": {
                    "replicas": 2,
                    "template": {"spec": {"containers": [container(gpus=8, **fields)]}},
                }
            }
        },
    }
    return read(body)


@pytest.mark.parametrize("command", [["torchrun"], None])
def test_an_elastic_job_has_its_nodes_before_its_args(command: list[str] | None) -> None:
    """The controller puts them there, be the launcher the command's or the image's."""
    args = ["--nproc_per_node=8", IMAGENET, "--arch=resnet18", "--batch-size=64", "/data"]
    reading = _elastic(args=args, **({"command": command} if command else {}))

    assert found(reading, BATCH, DEGREE) == {BATCH: 64, DEGREE: 16}


def test_one_template_for_launcher_and_workers_runs_on_all_of_them() -> None:
    """MPIJob v1alpha1: `mpirun` without a number starts a process a slot of every replica."""
    body = {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MPIJob",
        "metadata": {"name": "x"},
        "spec": {
            "replicas": 2,
            "template": {
                "spec": {
                    "containers": [
                        container(
                            "mpirun",
                            "python",
                            TF_CNN,
                            "--model=resnet50",
                            "--batch_size=128",
                            "--variable_update=horovod",
                            gpus=4,
                        )
                    ]
                }
            },
        },
    }

    assert found(read(body), BATCH, DEGREE) == {BATCH: 128, DEGREE: 8}


def test_a_namesake_is_told_by_its_flags() -> None:
    """TensorFlow's BERT has NVIDIA's folder and file name, and flags that PyTorch's has not."""
    line = "python3 /workspace/BERT/run_pretraining.py --train_batch_size=64 --max_seq_length=128 "

    ours = read_script(line + "--config_file=bert_configs/large.json --input_dir=/data")
    theirs = read_script(line + "--bert_config_file=/d/bert_config.json --input_files_dir=/data")

    assert found(ours, "framework", BATCH) == {"framework": "pytorch", BATCH: 64}
    assert found(theirs, "framework", BATCH) == {"framework": None, BATCH: None}


def test_a_copied_trl_script_takes_what_its_own_release_took() -> None:
    """What moved between releases is left out where neither place nor version is told."""
    flags = ["--model_name_or_path=google/gemma-2b", "--dataset_name=a/b", "--use_peft"]
    paths = ("input.sequenceLength", "training.precision", "training.gradientCheckpointing")

    copied = read_args("python", "./sft.py", *flags, "--per_device_train_batch_size=2")
    own = read_args("trl", "sft", *flags, "--per_device_train_batch_size=2")

    assert found(copied, BATCH, *paths) == {BATCH: 2, **dict.fromkeys(paths)}
    assert found(own, "input.sequenceLength") == {"input.sequenceLength": 1024}


@pytest.mark.parametrize(
    "script", ["uid_entrypoint.sh", "/usr/local/bin/docker-entrypoint.sh", "/opt/entrypoint"]
)
def test_an_images_entry_script_runs_what_it_is_given(script: str) -> None:
    """By convention it ends in `exec "$@"`."""
    reading = read_args(script, "python", "/imagenet/main.py", "-a", "resnet18", "-b", "8")

    assert found(reading, MODEL, BATCH) == {MODEL: "resnet18", BATCH: 8}


def test_flags_alone_are_read_like_those_of_a_script_that_is_not_known() -> None:
    """The Trainer's own names say what they say, whatever the image starts."""
    flags = ["--model_name_or_path=distilbert/distilbert-base-cased", "--output_dir=/o"]
    reading = read_args(*flags, "--per_device_train_batch_size=32")

    assert found(reading, MODEL, BATCH) == {MODEL: "distilbert/distilbert-base-cased", BATCH: 32}
    assert not reading.is_certain


@pytest.mark.parametrize(
    ("image", "args"),
    [
        ("tensorflow/tensorflow:2.13.0-gpu-jupyter", []),
        ("gcr.io/k8s-staging-perf-tests/sleep:v0.0.3", ["10s"]),
        ("registry.k8s.io/e2e-test-images/agnhost:2.53", ["netexec"]),
        ("vectoradd", ["--verbose"]),
    ],
)
def test_images_that_only_wait_or_test_train_nothing(image: str, args: list[str]) -> None:
    """Published images whose entry point is not given another command."""
    assert read_args(*args, image=image).skip == ReasonCode.NO_TRAINING


def test_a_file_that_only_sets_nccl_up_changes_no_flag() -> None:
    """Google's charts name it by a variable that the image or the chart sets."""
    line = "python /imagenet/main.py -a resnet18 -b $B"
    named = read_script(f"source ${{NCCL_INIT_SCRIPT}}\n{line}", env={"B": "8"})
    other = read_script(f"source ${{INIT_SCRIPT}}\n{line}", env={"B": "8"})

    assert found(named, BATCH) == {BATCH: 8}
    assert found(other, BATCH) == {BATCH: None}


def test_a_switch_that_is_off_says_which_optimizer_it_is() -> None:
    """The diffusion trainer has two: AdamW, or the same in eight bits."""
    line = (
        "python /app/finetuner.py --model runwayml/stable-diffusion-v1-5 --batch_size 1 "
        "--resolution 512 --image_log_steps 5 --image_log_amount 1 --use_8bit_adam"
    )

    off, on = (read_script(f"{line} {value}") for value in ("False", "True"))

    assert found(off, "training.optimizer") == {"training.optimizer": {"name": "adamw"}}
    assert found(on, "training.optimizer") == {"training.optimizer": {"name": "adamw", "bits": 8}}


def test_a_null_number_of_gpus_is_said() -> None:
    """A file that leaves it out is read, with a warning that names the field."""
    body = container("python", "/imagenet/main.py", "-a", "resnet18", "-b", "8")
    body["resources"] = {"limits": {"nvidia.com/gpu": None}}
    workload = read_workload(job(body))
    reading = read_unit(workload.units[0], workload=workload)

    assert any("the number of GPUs null" in warning for warning in reading.warnings)
    assert ReasonCode.TEMPLATE in codes(reading)


@pytest.mark.parametrize("value", ["none", "void"])
def test_a_container_that_hides_its_gpus_is_a_doubt(value: str) -> None:
    """Some runtimes go by the variable and others do not: nobody is refused on it."""
    reading = read_args(
        "python", IMAGENET, "-a", "resnet18", "-b", "32", env={"NVIDIA_VISIBLE_DEVICES": value}
    )

    assert found(reading, BATCH) == {BATCH: 32}
    assert not reading.is_certain
    assert any("NVIDIA_VISIBLE_DEVICES" in warning for warning in reading.warnings)


def test_all_devices_are_what_the_pod_asks_for() -> None:
    """`all` is written everywhere."""
    reading = read_args(
        "python", IMAGENET, "-a", "resnet18", "-b", "32", env={"NVIDIA_VISIBLE_DEVICES": "all"}
    )

    assert reading.is_certain
