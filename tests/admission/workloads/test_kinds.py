"""Each kind: where its templates are, how many pods, whether it has started."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import yaml

from admission.codes import ReasonCode
from admission.errors import RequestError
from admission.workloads import KINDS, read_workload
from admission.workloads.units import MAX_TEMPLATES, MAX_UNITS
from tests.admission.workloads.objects import OBJECTS, PODS, pod, trainjob

POD = pod()


def _object(kind: str, **fields: Any) -> dict[str, Any]:
    return {**deepcopy(OBJECTS[kind]), **fields}


@pytest.mark.parametrize("kind", OBJECTS)
def test_units_of_a_kind(kind: str) -> None:
    """Every kind gives a unit a GPU container and role, with exact paths."""
    workload = read_workload(_object(kind, metadata={"name": "x", "namespace": "team"}))

    assert workload.skip is None
    assert (workload.ref.namespace, workload.ref.name) == ("team", "x")
    assert [
        (unit.role, unit.template, unit.container_path, unit.replicas) for unit in workload.units
    ] == PODS[kind]
    assert {(unit.gpus, unit.pod_gpus) for unit in workload.units} == {(2, 2)}
    assert all(unit.are_gpus_known and unit.are_replicas_known for unit in workload.units)


def test_every_kind_that_is_read_has_an_object_here() -> None:
    """A kind without one would be read by nobody's test: a RayCluster and TrainJobs have theirs."""
    elsewhere = {("ray.io", "RayCluster"), ("trainer.kubeflow.org", "TrainJob")}
    same = {("trainer.kubeflow.org", "TrainingRuntime")}
    tested = {(obj["apiVersion"].rpartition("/")[0], obj["kind"]) for obj in OBJECTS.values()}

    assert set(KINDS) == tested | elsewhere | same


@pytest.mark.parametrize(
    ("kind", "framework"),
    [
        ("PyTorchJob", "pytorch"),
        ("TFJob", "tensorflow"),
        ("JAXJob", "jax"),
        ("MXJob", "mxnet"),
        ("HyperPodPyTorchJob", "pytorch"),
        ("ElasticJob", "pytorch"),
        ("Workspace", "pytorch"),
        ("ClusterTrainingRuntime", "pytorch"),
        ("MPIJob", ""),
        ("Job", ""),
        ("XGBoostJob", ""),
    ],
)
def test_kinds_made_for_a_framework_say_so(kind: str, framework: str) -> None:
    """It counts where nothing else tells."""
    assert read_workload(_object(kind)).framework == framework


@pytest.mark.parametrize(
    ("kind", "observed", "explained"),
    [
        ("Job", False, False),
        ("LeaderWorkerSet", False, False),
        ("Deployment", True, False),
        ("StatefulSet", True, False),
        ("Notebook", True, False),
        ("WorkflowTemplate", False, True),
        ("ClusterWorkflowTemplate", False, True),
        ("ClusterTrainingRuntime", False, True),
        ("CronWorkflow", False, False),
    ],
)
def test_what_is_only_counted_or_explained(kind: str, observed: bool, explained: bool) -> None:
    """Services run until told to stop, and templates are others' to start."""
    workload = read_workload(_object(kind))

    assert (workload.observe_only, workload.explain_only) == (observed, explained)


@pytest.mark.parametrize(
    ("kind", "steering"),
    [
        ("Pod", "spec"),
        ("Job", "spec.template.spec"),
        ("Workflow", "spec.templates[0]"),
        ("Workspace", "resource.labelSelector"),
        ("VolcanoJob", ""),
        ("HyperPodPyTorchJob", ""),
    ],
)
def test_where_a_kind_is_steered(kind: str, steering: str) -> None:
    """In the pod spec, beside it, or only on the pods where the template may not be changed."""
    assert read_workload(_object(kind)).units[0].steering == steering


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
        ("MPIJob", {"conditions": [{"type": "Created", "status": "True"}]}, False),
        ("MPIJob", {"conditions": [{"type": "Running", "status": "True"}]}, True),
        ("JobSet", {"replicatedJobsStatus": [{"name": "node", "active": 0}]}, False),
        ("JobSet", {"replicatedJobsStatus": [{"name": "node", "active": 1}]}, True),
        ("VolcanoJob", {"state": {"phase": "Pending"}}, False),
        ("VolcanoJob", {"state": {"phase": "Running"}}, True),
        ("RayJob", {"jobDeploymentStatus": "Suspended"}, False),
        ("RayJob", {"jobDeploymentStatus": "Initializing"}, True),
        ("Workflow", {}, False),
        ("Workflow", {"startedAt": "2026-01-01T00:00:00Z"}, True),
        ("CronWorkflow", {"lastScheduledTime": "2026-01-01T00:00:00Z"}, False),
        ("ClusterTrainingRuntime", {"active": 1}, False),
        ("Deployment", {"readyReplicas": 1}, True),
        ("Workspace", {"conditions": [{"type": "JobStarted", "status": "True"}]}, True),
        ("Workspace", {"conditions": [{"type": "ResourceReady", "status": "True"}]}, False),
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
        ("serving.kserve.io/v1beta1", "InferenceService", ReasonCode.KIND),
        ("batch.volcano.sh/v1alpha1", "Job", ReasonCode.NO_GPU),
        ("kubeflow.org/v1", "XGBoostJob", ReasonCode.NO_GPU),
        ("kaito.sh/v1beta1", "Workspace", ReasonCode.NO_TRAINING),
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
        ("{completions: -1}", "spec.completions"),
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
    job = _object("Job")
    job["spec"]["parallelism"] = 0
    pytorchjob = _object("PyTorchJob")
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


@pytest.mark.parametrize(("completions", "replicas"), [(1, 1), (9, 3), (None, 3), ("$N", 3)])
def test_a_job_runs_no_more_pods_than_it_has_work(completions: object, replicas: int) -> None:
    """`completions` bounds what `parallelism` allows."""
    job = _object("Job")
    job["spec"]["completions"] = completions

    assert read_workload(job).units[0].replicas == replicas


@pytest.mark.parametrize("number", ["$NODES", "{{nodes}}", "<nodes>", "NUM_NODES"])
def test_replicas_that_nobody_filled_in_are_at_least_one(number: str) -> None:
    """The unit is there, and its number is said to be open."""
    pytorchjob = _object("PyTorchJob")
    pytorchjob["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = number

    _, worker = read_workload(pytorchjob).units

    assert (worker.replicas, worker.are_replicas_known) == (1, False)


def test_a_trainjob_starts_with_the_pods_of_its_jobs() -> None:
    """Before, the operator has only taken note of it."""
    waiting = trainjob() | {"status": {"jobsStatus": [{"name": "node", "active": 0}]}}
    running = trainjob() | {"status": {"jobsStatus": [{"name": "node", "active": 2}]}}

    assert not read_workload(waiting).started
    assert read_workload(running).started
