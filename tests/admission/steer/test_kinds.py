"""Golden patches: where each kind is steered as it is created."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import orjson
import pytest

from admission.steer.notes import DIGEST, ENOUGH, ESTIMATE, LEAST, VERDICT
from admission.steer.terms import RECORD
from estimator.units import MIB
from tests.admission.steer.scene import A10_RESERVATION, Scene, gt, lt, node_affinity, preferred
from tests.admission.workloads.objects import OBJECTS, PODS, trainjob
from tests.builders import job_spec

NEED = 20_000
OVER = NEED + A10_RESERVATION - 1
REQUIRED = [gt(OVER)]
TIERS = preferred((100, [lt(40960)]), (50, [lt(81920)]))
"""Smaller than the A100 with 40 GB: the A10. Smaller than that with 80 GB: both."""
NOTES = {
    ESTIMATE: str(NEED * MIB),
    LEAST: str(NEED * MIB),
    ENOUGH: str(NEED * MIB),
    VERDICT: "fits",
    DIGEST: job_spec().digest(),
}
TERMS = orjson.dumps({"preferred": TIERS, "required": REQUIRED}, option=orjson.OPT_SORT_KEYS)


def template_patch(path: str, *, container: int = 1) -> list[dict[str, Any]]:
    """Return the operations on a pod template at the JSON pointer *path*."""
    return [
        {"op": "add", "path": f"{path}/spec/affinity", "value": node_affinity(REQUIRED, TIERS)},
        {
            "op": "add",
            "path": f"{path}/spec/containers/{container}/terminationMessagePolicy",
            "value": "FallbackToLogsOnError",
        },
        {
            "op": "add",
            "path": f"{path}/metadata",
            "value": {"annotations": {RECORD: TERMS.decode(), **NOTES}},
        },
    ]


def ordered(patch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return *patch* in an order of its own: between these operations it does not matter."""
    return sorted(patch, key=lambda step: str(step["path"]))


STEERED = {
    "Job": ["/spec/template"],
    "CronJob": ["/spec/jobTemplate/spec/template"],
    "JobSet": ["/spec/replicatedJobs/0/template/spec/template"],
    "PyTorchJob": [f"/spec/pytorchReplicaSpecs/{role}/template" for role in ("Master", "Worker")],
    "TFJob": [f"/spec/tfReplicaSpecs/{role}/template" for role in ("Chief", "PS", "Worker")],
    "JAXJob": ["/spec/jaxReplicaSpecs/Worker/template"],
    "MXJob": [
        f"/spec/mxReplicaSpecs/{role}/template" for role in ("Scheduler", "Server", "Worker")
    ],
    "XGBoostJob": [f"/spec/xgbReplicaSpecs/{role}/template" for role in ("Master", "Worker")],
    "PaddleJob": ["/spec/paddleReplicaSpecs/Worker/template"],
    "MPIJob": [f"/spec/mpiReplicaSpecs/{role}/template" for role in ("Launcher", "Worker")],
    "LeaderWorkerSet": [
        f"/spec/leaderWorkerTemplate/{role}Template" for role in ("leader", "worker")
    ],
    "VolcanoJob": ["/spec/tasks/0/template"],
    "RayJob": [
        "/spec/rayClusterSpec/headGroupSpec/template",
        "/spec/rayClusterSpec/workerGroupSpecs/0/template",
    ],
    "HyperPodPyTorchJob": ["/spec/replicaSpecs/0/template"],
    "ElasticJob": ["/spec/replicaSpecs/Worker/template"],
}
NOTED = ("Workflow", "CronWorkflow", "Workspace")
"""Their pods are steered, each as it is made."""
LEFT = (
    "ClusterTrainingRuntime",
    "ClusterWorkflowTemplate",
    "Deployment",
    "Notebook",
    "StatefulSet",
    "WorkflowTemplate",
)
"""Serving, interactive, or a template that others start jobs from."""


def _object(kind: str) -> dict[str, Any]:
    """Return an object of *kind*; an MPI launcher says which of its containers is the program."""
    obj = deepcopy(OBJECTS[kind])
    if kind == "MPIJob":
        launcher = obj["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
        launcher[0]["command"], launcher[1]["command"] = ["sleep", "1"], ["mpirun", "train"]
    return obj


def test_every_kind_is_here() -> None:
    """A kind that is added has to say where it is steered."""
    assert {*STEERED, *NOTED, *LEFT, "Pod"} == set(OBJECTS)


@pytest.mark.parametrize("kind", STEERED)
def test_pod_templates_get_affinity_notes_and_readable_deaths(kind: str) -> None:
    """Required over the need, preferred by size, and nothing else."""
    wanted = [step for path in STEERED[kind] for step in template_patch(path)]
    wanted += [{"op": "add", "path": "/metadata", "value": {"annotations": NOTES}}]

    patch = Scene().steered(_object(kind)).patch

    assert ordered(patch) == ordered(wanted)


def test_pod_is_its_own_template() -> None:
    """Its annotations are written once."""
    assert ordered(Scene().steered(OBJECTS["Pod"]).patch) == ordered(template_patch(""))


@pytest.mark.parametrize("kind", NOTED)
def test_pods_described_otherwise_are_left_to_their_own_creation(kind: str) -> None:
    """The object says what was found; what stands in no pod template is not rewritten."""
    obj = deepcopy(OBJECTS[kind])
    if kind == "Workspace":
        obj["resource"]["labelSelector"] = {}
        obj["resource"].pop("instanceType")

    patch = Scene().steered(obj).patch

    assert {step["path"].rpartition("/")[0] for step in patch} <= {"", "/metadata"}


@pytest.mark.parametrize("kind", LEFT)
def test_what_is_only_observed_is_left_alone(kind: str) -> None:
    """A Deployment is never touched."""
    assert Scene().steered(OBJECTS[kind]).patch == []


def test_job_of_a_runtime_is_noted_and_its_jobset_steered() -> None:
    """Its pods stand in another object; what its controller makes of them is steered."""
    resources = {"limits": {"nvidia.com/gpu": 2}}
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "controller": True}
    jobset = {**OBJECTS["JobSet"], "metadata": {"ownerReferences": [owner]}}

    noted = Scene().steered(trainjob({"resourcesPerNode": resources}))
    steered = Scene().steered(jobset)

    assert [step["path"] for step in noted.patch] == ["/metadata/annotations"]
    assert len(steered.placed()) == 1


def test_templates_are_those_that_the_kinds_read() -> None:
    """The pointers above are the field paths of the units."""
    for kind, paths in STEERED.items():
        assert len(paths) == len({template for _, template, _, _ in PODS[kind]})
