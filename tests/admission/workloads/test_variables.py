"""What each kind's controller sets in its containers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from admission.workloads import read_workload
from tests.admission.workloads.objects import OBJECTS, roles, template


def _injected(obj: dict[str, Any], role: str) -> dict[str, str]:
    units = read_workload(obj).units
    return dict(next(unit.injected for unit in units if unit.role == role))


def _kubeflow(kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": "j"}, "spec": spec}


@pytest.mark.parametrize(
    ("fields", "replicas", "expected"),
    [
        ({}, {"Master": 1, "Worker": 3}, ("auto", "4", "4")),
        ({"nprocPerNode": "8"}, {"Master": 1, "Worker": 3}, ("8", "4", "32")),
        ({"nprocPerNode": "gpu"}, {"Master": 1, "Worker": 3}, ("gpu", "4", "4")),
        ({}, {"Worker": 3}, ("auto", "3", None)),
        ({"nprocPerNode": "$N"}, {"Master": 1}, (None, "1", "1")),
        ({}, {"Master": 1, "Worker": "$N"}, ("auto", None, None)),
        (
            {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4, "nProcPerNode": 2}},
            {"Worker": 3},
            ("2", "1:4", None),
        ),
        ({"elasticPolicy": {"maxReplicas": 4}}, {"Worker": 3}, (None, "4", None)),
        ({"elasticPolicy": {"rdzvBackend": "c10d"}}, {"Worker": 3}, (None, "3", None)),
        ({"elasticPolicy": {"minReplicas": "$N"}}, {"Worker": 3}, (None, None, None)),
    ],
)
def test_pytorchjob(
    fields: dict[str, Any], replicas: dict[str, Any], expected: tuple[str | None, ...]
) -> None:
    """torchrun's variables; the size of the group needs a Master, and numbers that are there."""
    obj = _kubeflow("PyTorchJob", pytorchReplicaSpecs=roles(**replicas), **fields)

    found = _injected(obj, next(reversed(replicas)))

    names = ("PET_NPROC_PER_NODE", "PET_NNODES", "WORLD_SIZE")
    assert tuple(found.get(name) for name in names) == expected


def test_tfjob_says_who_is_in_the_cluster() -> None:
    """An evaluator is none of it; a job of one pod has no cluster."""
    several = _kubeflow("TFJob", tfReplicaSpecs=roles(Chief=1, Worker=2, Evaluator=1))
    single = _kubeflow("TFJob", tfReplicaSpecs=roles(Worker=1))

    config = json.loads(_injected(several, "Worker")["TF_CONFIG"])

    assert {role: len(hosts) for role, hosts in config["cluster"].items()} == {
        "chief": 1,
        "worker": 2,
    }
    assert config["task"]["type"] == "worker"
    assert _injected(single, "Worker") == {}


@pytest.mark.parametrize(
    ("kind", "role", "expected"),
    [
        ("JAXJob", "Worker", {"NUM_PROCESSES": "4"}),
        (
            "MXJob",
            "Worker",
            {
                "DMLC_NUM_WORKER": "4",
                "DMLC_NUM_SERVER": "2",
                "DMLC_ROLE": "worker",
                "DMLC_USE_KUBERNETES": "1",
            },
        ),
        ("PaddleJob", "Worker", {"PADDLE_NNODES": "4"}),
        ("XGBoostJob", "Worker", {}),
        ("MPIJob", "Launcher", {"OMPI_MCA_orte_set_default_slots": "1"}),
        ("LeaderWorkerSet", "worker", {"LWS_GROUP_SIZE": "4"}),
        ("HyperPodPyTorchJob", "pods", {"PET_NPROC_PER_NODE": "auto"}),
        (
            "ClusterTrainingRuntime",
            "node",
            {"PET_NNODES": "3", "PET_NPROC_PER_NODE": "auto"},
        ),
        ("Job", "main", {}),
    ],
)
def test_numbers_that_kinds_set(kind: str, role: str, expected: dict[str, str]) -> None:
    """How many there are of what; ranks and addresses change no need."""
    assert _injected(OBJECTS[kind], role) == expected


def _volcano(plugins: dict[str, Any], **tasks: int | str) -> dict[str, Any]:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "plugins": plugins,
            "tasks": [
                {"name": name.replace("_", "-"), "replicas": number, "template": template()}
                for name, number in tasks.items()
            ],
        },
    }


def test_volcano_svc_lists_the_hosts_of_each_task() -> None:
    """Dashes become underscores; a number that is not filled in lists nothing."""
    obj = _volcano({"svc": []}, my_ps=1, worker=2, late="$N")

    found = _injected(obj, "worker")

    assert found == {
        "VC_MY_PS_NUM": "1",
        "VC_MY_PS_HOSTS": "j-my-ps-0.j",
        "VC_WORKER_NUM": "2",
        "VC_WORKER_HOSTS": "j-worker-0.j,j-worker-1.j",
    }


def test_volcano_svc_can_be_told_to_set_nothing() -> None:
    """`--inject-hosts-env=false` keeps long lists out."""
    assert _injected(_volcano({"svc": ["--inject-hosts-env=false"]}, worker=2), "worker") == {}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--master=lead", "--worker=hand", "--port=1"], ("3", "j-lead-0.j", "1")),
        (["-master", "lead", "-worker", "hand"], ("3", "j-lead-0.j", "23456")),
        ([], (None, None, None)),
    ],
)
def test_volcano_pytorch_counts_master_and_workers(
    arguments: list[str], expected: tuple[str | None, ...]
) -> None:
    """One process a pod; without the master it is told of, the plugin does nothing."""
    found = _injected(_volcano({"pytorch": arguments}, lead=1, hand=2, other=5), "hand")

    names = ("WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    assert tuple(found.get(name) for name in names) == expected


@pytest.mark.parametrize(
    ("plugins", "framework"),
    [({"pytorch": []}, "pytorch"), ({"tensorflow": []}, "tensorflow"), ({"svc": []}, "")],
)
def test_volcano_plugins_tell_the_framework(plugins: dict[str, Any], framework: str) -> None:
    """A plugin is named after what it sets up."""
    workload = read_workload(_volcano(plugins, worker=1))

    assert workload.framework == framework


@pytest.mark.parametrize("word", ["$N", True, "many", 2.5])
def test_processes_that_are_no_number_are_left_out(word: object) -> None:
    """torchrun would refuse them, or nobody has filled them in."""
    obj = {**OBJECTS["HyperPodPyTorchJob"]}
    obj["spec"] = {**obj["spec"], "nprocPerNode": word}

    assert _injected(obj, "pods") == {}
