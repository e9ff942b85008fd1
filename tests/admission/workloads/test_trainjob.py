"""TrainJobs: their runtime, and what they change of it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import yaml

from admission.codes import ReasonCode
from admission.errors import RequestError
from admission.values import Document, Documents, Unit
from admission.workloads import read_workload
from tests.admission.workloads.objects import GPU, NODE_PATH, RUNTIME, runtime_documents, trainjob

REFERENCE = "clustertrainingruntime/torch"


def _unit(obj: dict[str, Any], documents: Documents | None = None) -> Unit:
    return read_workload(obj, documents=documents or runtime_documents()).units[0]


def _with(**policy: Any) -> Documents:
    """Return the runtime with other policies."""
    runtime = deepcopy(RUNTIME)
    runtime["spec"]["mlPolicy"] = policy
    return runtime_documents(runtime)


def test_without_changes_it_is_the_runtime() -> None:
    """Field paths name the object that they are in."""
    unit = _unit(trainjob())

    assert (unit.role, unit.replicas, unit.gpus) == ("node", 3, 2)
    assert unit.container_path == f"{REFERENCE}: {NODE_PATH}.spec.containers[0]"
    assert unit.container_spec["command"] == ["torchrun", "base.py"]
    assert unit.steering == "spec.runtimePatches"


def test_trainer_puts_its_own_over_the_container_node() -> None:
    """Image, command and args replace, variables and resources are merged."""
    trainer = {
        "image": "own",
        "command": ["torchrun"],
        "args": ["own.py"],
        "numNodes": 5,
        "numProcPerNode": 4,
        "env": [{"name": "B", "value": "job"}, {"name": "C", "value": "job"}],
        "resourcesPerNode": {"limits": {GPU: 4}},
    }

    unit = _unit(trainjob(trainer))

    assert (unit.replicas, unit.gpus) == (5, 4)
    assert unit.container_path == "spec.trainer"
    assert {key: unit.container_spec[key] for key in ("image", "command", "args")} == {
        "image": "own",
        "command": ["torchrun"],
        "args": ["own.py"],
    }
    assert [(one["name"], one["value"]) for one in unit.container_spec["env"]] == [
        ("A", "runtime"),
        ("B", "job"),
        ("C", "job"),
    ]
    assert unit.injected == {"PET_NNODES": "5", "PET_NPROC_PER_NODE": "4"}


@pytest.mark.parametrize(
    "change",
    [
        {
            "runtimePatches": [
                {
                    "manager": "x",
                    "trainingRuntimeSpec": {
                        "template": {
                            "spec": {
                                "replicatedJobs": [
                                    {
                                        "name": "node",
                                        "template": {
                                            "spec": {
                                                "template": {"spec": {"nodeSelector": {"a": "b"}}}
                                            }
                                        },
                                    }
                                ]
                            }
                        }
                    },
                }
            ]
        },
        {
            "podTemplateOverrides": [
                {"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"a": "b"}}}
            ]
        },
        {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "b"}}]},
    ],
    ids=["patches", "template-overrides", "spec-overrides"],
)
def test_patches_of_every_release_are_applied(change: dict[str, Any]) -> None:
    """To the jobs they name, and what they leave out stays."""
    unit = _unit(trainjob(**change))

    assert unit.pod["nodeSelector"] == {"a": "b"}
    assert unit.container_spec["command"] == ["torchrun", "base.py"]


def test_overrides_of_other_jobs_change_nothing() -> None:
    """Each names its targets."""
    override = {"targetJobs": [{"name": "other"}], "spec": {"nodeSelector": {"a": "b"}}}

    assert "nodeSelector" not in _unit(trainjob(podTemplateOverrides=[override])).pod


def test_model_that_is_fetched_before_is_known_by_its_folder() -> None:
    """The script is given `/workspace/model`; the initializer says what is in it."""
    initializer = {"model": {"storageUri": "hf://org/model"}}

    found = _unit(trainjob(initializer=initializer))
    other = _unit(trainjob(initializer={"model": {"storageUri": "s3://bucket/model"}}))

    assert found.models == {"/workspace/model": "org/model"}
    assert other.models == {}


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ({}, "clustertrainingruntime torch was not read"),
        (
            {REFERENCE: Document(problem="is not there")},
            "clustertrainingruntime torch is not there",
        ),
    ],
)
def test_runtime_that_is_not_read_is_a_problem(documents: Documents, reason: str) -> None:
    """It is wanted until somebody has looked for it."""
    workload = read_workload(trainjob(), documents=documents)

    (problem,) = workload.problems
    assert (problem.code, problem.reason) == (ReasonCode.DOCUMENT, reason)
    assert (workload.units, workload.skip) == ((), None)
    assert workload.wanted == (() if documents else (REFERENCE,))


def test_without_its_runtime_the_job_says_what_it_can() -> None:
    """GPUs it asks for itself are a unit, though what it runs may be elsewhere."""
    trainer = {"command": ["python", "x.py"], "resourcesPerNode": {"limits": {GPU: 4}}}

    workload = read_workload(trainjob(trainer))

    (unit,) = workload.units
    assert (unit.container_path, unit.gpus) == ("spec.trainer", 4)
    assert len(workload.problems) == 1


def test_a_namespaced_runtime_is_another_reference() -> None:
    """`kind` says which of the two it is."""
    ref = {"name": "mine", "kind": "TrainingRuntime"}

    assert read_workload(trainjob(runtimeRef=ref)).wanted == ("trainingruntime/mine",)


@pytest.mark.parametrize(
    ("as_node", "replicas", "gpu_roles"),
    [(True, 4, ["launcher", "node"]), (False, 5, ["node"])],
)
def test_mpi_launcher_may_be_one_of_the_nodes(
    as_node: bool, replicas: int, gpu_roles: list[str]
) -> None:
    """Its command is the launcher's, and the nodes wait for it."""
    runtime = yaml.safe_load(
        f"""
        kind: ClusterTrainingRuntime
        metadata: {{name: torch}}
        spec:
          mlPolicy:
            mpi: {{numProcPerNode: 2, runLauncherAsNode: {str(as_node).lower()}}}
          template:
            spec:
              replicatedJobs:
                - name: launcher
                  template:
                    metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
                    spec: {{template: {{spec: {{containers: [{{name: node}}]}}}}}}
                - name: node
                  template:
                    spec:
                      template:
                        spec: {{containers: [{{name: node, command: [/usr/sbin/sshd, -De]}}]}}
        """
    )
    trainer: dict[str, Any] = {"numNodes": 5, "command": ["mpirun", "python", "x.py"]}
    trainer["resourcesPerNode"] = {"limits": {GPU: 2}}
    if not as_node:
        node = runtime["spec"]["template"]["spec"]["replicatedJobs"][1]
        container = node["template"]["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"limits": {GPU: 2}}
        del trainer["resourcesPerNode"]

    workload = read_workload(trainjob(trainer), documents=runtime_documents(runtime))

    assert [unit.role for unit in workload.units] == gpu_roles
    node_unit = workload.units[-1]
    assert node_unit.replicas == replicas
    assert node_unit.program.path == "spec.trainer"
    assert node_unit.injected == {"OMPI_MCA_orte_set_default_slots": "2"}


@pytest.mark.parametrize(
    ("trainer", "words"),
    [
        ({}, ["--rdzv_endpoint=localhost:29500", "full_finetune_distributed", "_full_multinode"]),
        (
            {"numNodes": 1, "numProcPerNode": 1},
            ["full_finetune_single_device", "_full_single_device"],
        ),
        (
            {"numNodes": 1, "args": ["model.lora_attn_modules=[q_proj]"]},
            ["--rdzv_endpoint=localhost:29500", "lora_finetune_distributed", "_lora"],
        ),
        (
            {"numNodes": 1, "args": ["model.quantize_base=True"]},
            ["--rdzv_endpoint=localhost:29500", "lora_finetune_distributed", "_qlora"],
        ),
        (
            {
                "numNodes": 1,
                "resourcesPerNode": {"limits": {GPU: 1}},
                "args": ["model.quantize_base=True", "model.use_dora=True"],
            },
            ["full_finetune_single_device", "_full_single_device"],
        ),
    ],
)
def test_tune_run_gets_its_recipe_from_the_operator(
    trainer: dict[str, Any], words: list[str]
) -> None:
    """By nodes, GPUs and args; the model is in the runtime's name."""
    runtime = deepcopy(RUNTIME)
    runtime["metadata"]["name"] = "torchtune-llama3.2-1b"
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][1]
    container = job["template"]["spec"]["template"]["spec"]["containers"][0]
    container["command"] = ["tune", "run", "x", "output_dir=/out", "other=1"]
    obj = trainjob(
        {"command": ["tune", "run"], **trainer}, runtimeRef={"name": "torchtune-llama3.2-1b"}
    )

    command = _unit(obj, runtime_documents(runtime)).container_spec["command"]

    *start, ending = words
    assert command == [
        "tune",
        "run",
        *start,
        "--config",
        f"llama3_2/1B{ending}",
        "output_dir=/out",
    ]


@pytest.mark.parametrize(
    ("policy", "framework", "variables"),
    [
        ({"torch": {}}, "pytorch", {"PET_NNODES": "1", "PET_NPROC_PER_NODE": "auto"}),
        (
            {"torch": {"numProcPerNode": 2}},
            "pytorch",
            {"PET_NNODES": "1", "PET_NPROC_PER_NODE": "2"},
        ),
        ({"jax": {}}, "pytorch", {"JAX_NUM_PROCESSES": "1"}),
        ({"xgboost": {}}, "pytorch", {"DMLC_NUM_WORKER": "1"}),
        ({}, "pytorch", {}),
    ],
)
def test_policies_set_their_variables(
    policy: dict[str, Any], framework: str, variables: dict[str, str]
) -> None:
    """The label tells the framework before the policy does."""
    workload = read_workload(trainjob(), documents=_with(**policy))

    assert workload.framework == framework
    assert workload.units[0].injected == variables


@pytest.mark.parametrize(
    "text", ["[1]", "spec: 3", "spec: {template: {spec: {replicatedJobs: 3}}}", "{a: &b 1, c: *b}"]
)
def test_broken_runtimes_name_their_place(text: str) -> None:
    """The message says which object is broken."""
    with pytest.raises(RequestError, match=r"^clustertrainingruntime/torch"):
        read_workload(trainjob(), documents={REFERENCE: Document(files={"": text})})
