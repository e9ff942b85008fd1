"""What kinds and their operators say of a job: framework, processes, other roles, open numbers."""

from __future__ import annotations

from typing import Any

import pytest

from admission.codes import ReasonCode
from admission.detect import read_unit
from admission.values import Reading
from admission.workloads import read_workload
from tests.admission.detect.jobs import container, found
from tests.admission.workloads.objects import runtime_documents, trainjob

HF = (
    "run_clm.py",
    "--model_name_or_path=gpt2",
    "--dataset_name=x",
    "--do_train",
    "--per_device_train_batch_size=4",
    "--output_dir=o",
)
STRATEGY, DEGREE = "parallelism.strategy", "parallelism.dataParallel"


def _template(body: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": [body]}}


def _kubeflow(kind: str, key: str, **roles: tuple[object, dict[str, Any]]) -> dict[str, Any]:
    bodies = {
        role: {"replicas": number, "template": _template(body)}
        for role, (number, body) in roles.items()
    }
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "spec": {key: bodies}}


def _read(obj: dict[str, Any], role: str = "Worker") -> Reading:
    workload = read_workload(obj)
    unit = next(unit for unit in workload.units if unit.role == role)
    return read_unit(unit, workload=workload)


def test_kind_tells_the_framework_where_nothing_else_does() -> None:
    """And says so; the image's own program leaves the rest open."""
    reading = _read(_kubeflow("TFJob", "tfReplicaSpecs", Worker=(2, container())))

    assert found(reading, "framework") == {"framework": "tensorflow"}
    assert reading.sources["framework"] == "kind TFJob"


def test_script_tells_the_framework_before_the_kind() -> None:
    """A PyTorch script in a TFJob is a PyTorch script."""
    body = container("python", *HF)

    reading = _read(_kubeflow("TFJob", "tfReplicaSpecs", Worker=(1, body)))

    assert found(reading, "framework") == {"framework": "pytorch"}
    assert reading.sources["framework"] != "kind TFJob"


def test_framework_that_is_not_modelled_is_named() -> None:
    """Whatever the command says."""
    reading = _read(_kubeflow("PaddleJob", "paddleReplicaSpecs", Worker=(1, container())))

    assert (ReasonCode.UNSUPPORTED, "PaddlePaddle is not modelled") in [
        (finding.code, finding.reason) for finding in reading.unknowns
    ]


def test_smoke_tests_of_any_kind_are_skipped() -> None:
    """A framework that is not modelled does not matter to them."""
    body = container("nvidia-smi")

    reading = _read(_kubeflow("PaddleJob", "paddleReplicaSpecs", Worker=(1, body)))

    assert reading.skip is ReasonCode.NO_TRAINING


@pytest.mark.parametrize(
    ("words", "total"),
    [(("-np", "8"), 8), (("-np", "16"), 16), ((), 2 * 4)],
)
def test_mpirun_on_the_launcher_spans_the_workers(words: tuple[str, ...], total: int) -> None:
    """As many as it says, or the slots of all workers; four GPUs each are not crowded by eight."""
    launcher = {"name": "l", "command": ["mpirun", *words, "python", *HF]}
    obj = _kubeflow(
        "MPIJob", "mpiReplicaSpecs", Launcher=(1, launcher), Worker=(2, container(gpus=4))
    )
    if total == 16:
        obj["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 4
    obj["spec"]["slotsPerWorker"] = 4

    reading = _read(obj)

    assert found(reading, STRATEGY, DEGREE) == {STRATEGY: "ddp", DEGREE: total}
    assert reading.spec is not None


def test_a_launcher_with_gpus_is_one_of_the_workers() -> None:
    """`runLauncherAsWorker`: eight processes on the two pods together, four on each."""
    body = container("mpirun", "-np", "8", "python", *HF, gpus=4)
    launcher = {**body, "command": body.pop("args")}
    obj = _kubeflow(
        "MPIJob", "mpiReplicaSpecs", Launcher=(1, launcher), Worker=(1, container(gpus=4))
    )

    for role in ("Launcher", "Worker"):
        assert found(_read(obj, role), STRATEGY, DEGREE) == {STRATEGY: "ddp", DEGREE: 8}
        assert _read(obj, role).spec is not None


def test_more_processes_than_gpus_are_crowded_on_workers_too() -> None:
    """Eight on two workers of one card each."""
    launcher = {"name": "l", "command": ["mpirun", "-np", "8", "python", *HF]}
    obj = _kubeflow("MPIJob", "mpiReplicaSpecs", Launcher=(1, launcher), Worker=(2, container()))

    reading = _read(obj)

    assert "4 processes on 1 GPU" in reading.unknowns[0].reason


@pytest.mark.parametrize(
    ("replicas", "gpus", "degree"), [(3, 2, 6), ("$NODES", 2, None), (3, "$GPUS", None)]
)
def test_numbers_that_nobody_filled_in_leave_the_degree_open(
    replicas: object, gpus: int | str, degree: int | None
) -> None:
    """Each card of a replicated job holds the same, however many there are: it is judged."""
    body = container("torchrun", *HF, gpus=gpus)

    reading = _read(_kubeflow("PyTorchJob", "pytorchReplicaSpecs", Worker=(replicas, body)))

    assert found(reading, STRATEGY, DEGREE) == {STRATEGY: "ddp", DEGREE: degree}
    assert reading.spec is not None
    is_told = any("not filled in" in warning for warning in reading.warnings)
    assert is_told is (degree is None)


def test_operator_tells_torchrun_how_many_processes() -> None:
    """`nprocPerNode` is the flag that is not on the command line."""
    obj = _kubeflow(
        "PyTorchJob",
        "pytorchReplicaSpecs",
        Master=(1, container("torchrun", *HF, gpus=4)),
        Worker=(3, container("torchrun", *HF, gpus=4)),
    )
    obj["spec"]["nprocPerNode"] = "2"

    assert found(_read(obj), DEGREE) == {DEGREE: 4 * 2}


def test_an_elastic_job_begins_with_its_replicas() -> None:
    """It may grow and shrink within its range."""
    obj = _kubeflow(
        "PyTorchJob", "pytorchReplicaSpecs", Worker=(3, container("torchrun", *HF, gpus=2))
    )
    obj["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 9}

    assert found(_read(obj), DEGREE) == {DEGREE: 3 * 2}


def test_roles_with_other_cards_are_added_up() -> None:
    """torchrun takes all of each."""
    obj = _kubeflow(
        "PyTorchJob",
        "pytorchReplicaSpecs",
        Master=(1, container("torchrun", *HF, gpus=1)),
        Worker=(2, container("torchrun", *HF, gpus=4)),
    )

    assert found(_read(obj), DEGREE) == {DEGREE: 1 + 2 * 4}


def test_elasticjobs_args_are_torchruns() -> None:
    """The image's entry point is the launcher."""
    obj = {
        "apiVersion": "elastic.pytorch.org/v1alpha1",
        "kind": "ElasticJob",
        "spec": {
            "minReplicas": 1,
            "maxReplicas": 8,
            "replicaSpecs": {
                "Worker": {
                    "replicas": 2,
                    "template": _template(container("--nproc_per_node=4", *HF, gpus=4)),
                }
            },
        },
    }

    reading = _read(obj)

    assert found(reading, "input.batchSize", DEGREE) == {"input.batchSize": 4, DEGREE: 2 * 4}
    assert reading.sources["input.batchSize"].startswith("containers[0].args")


def test_trainjob_trains_what_its_initializer_fetched() -> None:
    """The script's path is the folder that the model was put into."""
    trainer = {
        "command": ["torchrun"],
        "args": [word.replace("=gpt2", "=/workspace/model") for word in HF],
        "numNodes": 2,
    }
    obj = trainjob(trainer, initializer={"model": {"storageUri": "hf://openai-community/gpt2"}})
    documents = runtime_documents()

    workload = read_workload(obj, documents=documents)
    reading = read_unit(workload.units[0], workload=workload, documents=documents)

    assert found(reading, "model.name", DEGREE) == {
        "model.name": "openai-community/gpt2",
        DEGREE: 2 * 2,
    }
    assert reading.sources["input.batchSize"] == "trainer.args --per_device_train_batch_size"


def test_trainjob_without_its_runtime_is_unknown() -> None:
    """It may run something else than what it says itself."""
    trainer = {
        "command": ["torchrun", *HF],
        "resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}},
    }

    workload = read_workload(trainjob(trainer))
    reading = read_unit(workload.units[0], workload=workload)

    assert [finding.code for finding in reading.unknowns] == [ReasonCode.DOCUMENT]


def test_rayjobs_entrypoint_is_the_groups_command() -> None:
    """Its place is what sources name."""
    obj = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "spec": {
            "entrypoint": " ".join(("python", *HF)),
            "rayClusterSpec": {
                "headGroupSpec": {"template": _template({"name": "h"})},
                "workerGroupSpecs": [
                    {"groupName": "g", "replicas": 1, "template": _template(container())}
                ],
            },
        },
    }

    reading = _read(obj, "g")

    assert found(reading, "model.name") == {"model.name": "gpt2"}
    assert reading.sources["model.name"].startswith("entrypoint.")
