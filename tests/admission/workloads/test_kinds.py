"""Each kind: where its templates are, how many pods, whether it has started."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import yaml

from admission.codes import ReasonCode
from admission.errors import RequestError
from admission.workloads import read_workload
from admission.workloads.units import MAX_TEMPLATES, MAX_UNITS

POD = {
    "containers": [
        {"name": "side"},
        {"name": "train", "resources": {"limits": {"nvidia.com/gpu": 2}}},
    ]
}
OBJECTS: dict[str, dict[str, Any]] = {
    "Pod": {"apiVersion": "v1", "spec": POD},
    "Job": {"apiVersion": "batch/v1", "spec": {"parallelism": 3, "template": {"spec": POD}}},
    "CronJob": {
        "apiVersion": "batch/v1",
        "spec": {"jobTemplate": {"spec": {"template": {"spec": POD}}}},
    },
    "PyTorchJob": {
        "apiVersion": "kubeflow.org/v1",
        "spec": {
            "pytorchReplicaSpecs": {
                "Master": {"template": {"spec": POD}},
                "Worker": {"replicas": 4, "template": {"spec": POD}},
            }
        },
    },
}
PATHS = {
    "Pod": [("main", "", "spec.containers[1]", 1)],
    "Job": [("main", "spec.template", "spec.template.spec.containers[1]", 3)],
    "CronJob": [
        (
            "main",
            "spec.jobTemplate.spec.template",
            "spec.jobTemplate.spec.template.spec.containers[1]",
            1,
        )
    ],
    "PyTorchJob": [
        (
            role,
            f"spec.pytorchReplicaSpecs.{role}.template",
            f"spec.pytorchReplicaSpecs.{role}.template.spec.containers[1]",
            replicas,
        )
        for role, replicas in (("Master", 1), ("Worker", 4))
    ],
}


def _object(kind: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, **deepcopy(OBJECTS[kind]), **fields}


@pytest.mark.parametrize("kind", OBJECTS)
def test_units_of_a_kind(kind: str) -> None:
    """Every kind gives a unit a GPU container and role, with exact paths."""
    workload = read_workload(_object(kind, metadata={"name": "x", "namespace": "team"}))

    assert workload.skip is None
    assert (workload.ref.kind, workload.ref.namespace, workload.ref.name) == (kind, "team", "x")
    assert [
        (unit.role, unit.template, unit.container_path, unit.replicas) for unit in workload.units
    ] == PATHS[kind]
    assert {(unit.gpus, unit.pod_gpus, unit.container) for unit in workload.units} == {
        (2, 2, "train")
    }


@pytest.mark.parametrize(
    ("kind", "status", "started"),
    [
        ("Job", {}, False),
        ("Job", {"startTime": "2026-01-01T00:00:00Z"}, True),
        ("Job", {"active": 1}, True),
        ("CronJob", {"lastScheduleTime": "2026-01-01T00:00:00Z"}, False),
        ("PyTorchJob", {"conditions": [{"type": "Created", "status": "True"}]}, False),
        ("PyTorchJob", {"conditions": [{"type": "Running", "status": "True"}]}, True),
        ("PyTorchJob", {"startTime": "2026-01-01T00:00:00Z"}, True),
        ("Pod", {"phase": "Pending"}, False),
        ("Pod", {"startTime": "2026-01-01T00:00:00Z"}, True),
    ],
)
def test_started_is_read_per_kind(kind: str, status: dict[str, Any], started: bool) -> None:
    """Whether a workload has started stands elsewhere in each kind."""
    assert read_workload(_object(kind, status=status)).started is started


def test_a_pod_on_a_node_has_started() -> None:
    """A pod with a node name is running or about to."""
    pod = _object("Pod")
    pod["spec"]["nodeName"] = "gpu-0"

    assert read_workload(pod).started


def test_only_a_controller_owner_controls() -> None:
    """An owner without `controller: true` does not make a workload somebody else's."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "x"}

    owned = read_workload(_object("Pod", metadata={"ownerReferences": [owner]}))
    controlled = read_workload(
        _object("Pod", metadata={"ownerReferences": [{**owner, "controller": True}]})
    )

    assert not owned.controlled
    assert controlled.controlled


@pytest.mark.parametrize(
    ("api_version", "kind", "skip"),
    [
        ("v1", "Service", ReasonCode.KIND),
        ("batch.volcano.sh/v1alpha1", "Job", ReasonCode.KIND),
        ("batch/v1", "Job", ReasonCode.NO_GPU),
    ],
)
def test_what_is_skipped(api_version: str, kind: str, skip: ReasonCode) -> None:
    """Unknown kinds and workloads without a GPU are skipped, with the reason."""
    workload = read_workload({"apiVersion": api_version, "kind": kind, "spec": None})

    assert workload.skip is skip
    assert workload.units == ()


def test_kind_hints_stand_in_for_missing_fields() -> None:
    """A template without type fields is read as the kind the caller names."""
    obj = _object("Job")
    del obj["apiVersion"], obj["kind"]

    workload = read_workload(obj, api_version="batch/v1", kind="Job")

    assert len(workload.units) == 1


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("{template: {spec: {containers: 3}}}", "spec.template.spec.containers"),
        ("{template: {spec: {containers: [3]}}}", "spec.template.spec.containers[0]"),
        ("{template: [1]}", "spec.template"),
        ("{parallelism: many}", "spec.parallelism"),
        (
            "{template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1.5}}}]}}}",
            "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]",
        ),
        (
            "{template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: lots}}}]}}}",
            "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]",
        ),
    ],
)
def test_malformed_objects_name_the_path(spec: str, path: str) -> None:
    """A wrong type is a broken request, and the message says where."""
    obj = {"apiVersion": "batch/v1", "kind": "Job", "spec": yaml.safe_load(spec)}

    with pytest.raises(RequestError) as caught:
        read_workload(obj)

    assert caught.value.message.startswith(f"{path}: ")


def test_no_pods_are_no_units() -> None:
    """`parallelism: 0` and a role of no replicas start nothing."""
    job = {**deepcopy(OBJECTS["Job"]), "kind": "Job"}
    job["spec"]["parallelism"] = 0
    pytorchjob = {**deepcopy(OBJECTS["PyTorchJob"]), "kind": "PyTorchJob"}
    pytorchjob["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 0

    nothing, rest = read_workload(job), read_workload(pytorchjob)

    assert (nothing.units, nothing.skip) == ((), ReasonCode.NO_GPU)
    assert [unit.role for unit in rest.units] == ["Master"]


def test_more_roles_than_any_job_has_are_refused() -> None:
    """Thousands of roles are somebody's attack."""
    roles = {f"R{index}": {"template": {"spec": POD}} for index in range(MAX_TEMPLATES + 1)}
    obj = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "spec": {"pytorchReplicaSpecs": roles},
    }

    with pytest.raises(RequestError, match="at most 64 are read"):
        read_workload(obj)


def test_units_beyond_the_limit_are_one_more() -> None:
    """It stands for all the rest."""
    pod = {"containers": [POD["containers"][1]] * 100}

    workload = read_workload({"apiVersion": "v1", "kind": "Pod", "spec": pod})

    assert len(workload.units) == MAX_UNITS + 1
