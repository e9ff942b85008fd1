"""When an object may be steered: as it is created, while its kind lets it, by whom it was made."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from admission.codes import Operation, Steer, Verdict
from admission.steer.notes import DIGEST
from tests.admission.steer.scene import A10, A100, A100_80, PRODUCT, T4, Outcome, Scene, nodes
from tests.admission.workloads.objects import OBJECTS


def suspended(kind: str, **status: Any) -> dict[str, Any]:
    """Return a suspended object of *kind*."""
    obj = deepcopy(OBJECTS[kind])
    obj["spec"]["suspend"] = True
    obj["status"] = status
    return obj


def updated(obj: dict[str, Any], stored: dict[str, Any], **scene: Any) -> Outcome:
    """Return what is made of an update."""
    return Scene(**scene).steered(obj, operation=Operation.UPDATE, stored=stored)


def test_suspended_job_may_be_steered_and_its_containers_not_touched() -> None:
    """Kubernetes lets directives of a Job change that has never started, also as it is resumed."""
    stored = suspended("Job")
    resumed = deepcopy(OBJECTS["Job"])

    outcome = updated(resumed, stored)

    assert len(outcome.placed()) == 1
    assert not any("terminationMessagePolicy" in step["path"] for step in outcome.patch)


@pytest.mark.parametrize(
    ("obj", "stored"),
    [
        (deepcopy(OBJECTS["Job"]), deepcopy(OBJECTS["Job"])),
        (suspended("Job", startTime="2030-01-01T00:00:00Z"), suspended("Job")),
        (deepcopy(OBJECTS["VolcanoJob"]), deepcopy(OBJECTS["VolcanoJob"])),
        (deepcopy(OBJECTS["RayJob"]), deepcopy(OBJECTS["RayJob"])),
        (deepcopy(OBJECTS["Pod"]), deepcopy(OBJECTS["Pod"])),
        (deepcopy(OBJECTS["JobSet"]), deepcopy(OBJECTS["JobSet"])),
    ],
)
def test_update_that_the_kind_would_refuse_is_not_made(
    obj: dict[str, Any], stored: dict[str, Any]
) -> None:
    """A patch of an immutable field fails the person's request."""
    assert updated(obj, stored).patch == []


def test_cronjob_may_be_steered_at_any_time() -> None:
    """For its next run."""
    obj = deepcopy(OBJECTS["CronJob"])

    assert len(updated(obj, deepcopy(obj)).placed()) == 1


def test_suspended_jobset_gets_a_node_selector() -> None:
    """Its affinity cannot change any more, its nodeSelector can."""
    outcome = updated(suspended("JobSet"), suspended("JobSet"))

    (step,) = outcome.placed()
    assert step == {
        "op": "add",
        "path": "/spec/replicatedJobs/0/template/spec/template/spec/nodeSelector",
        "value": {PRODUCT: A10[0]},
    }
    assert updated(outcome.patched, suspended("JobSet")).patch == []


@pytest.mark.parametrize("scene", [{"steer": Steer.PREFERRED}, {"nodes": nodes((A10,))}])
def test_jobset_is_not_tied_to_a_card_without_need(scene: dict[str, Any]) -> None:
    """A nodeSelector is hard: not where a preference is asked for, nor where there is one card."""
    assert updated(suspended("JobSet"), suspended("JobSet"), **scene).placed() == []


def test_jobset_that_was_steered_as_it_was_created_stays() -> None:
    """Its affinity is as good as a nodeSelector, and immutable."""
    stored = Scene().steered(suspended("JobSet")).patched

    assert updated(stored, stored, need_mib=30_000).placed() == []


def test_workload_of_a_queue_is_steered_as_it_is_created_only() -> None:
    """Later Kueue has chosen a flavour for it."""
    obj = suspended("Job")
    obj["metadata"] = {"labels": {"kueue.x-k8s.io/queue-name": "q"}}

    assert len(Scene().steered(obj).placed()) == 1
    assert updated(obj, obj).patch == []


def test_terms_stay_in_an_update_that_changes_no_digest() -> None:
    """A re-apply after the nodes changed leaves the template as it is."""
    stored = Scene().steered(suspended("Job")).patched
    stored["spec"]["suspend"] = True
    more = nodes((T4, A10, A100, A100_80, ("NVIDIA-H200", 143_771, (9, 0))))

    same = updated(stored, stored, nodes=more)
    other = deepcopy(stored)
    other["spec"]["template"]["metadata"]["annotations"][DIGEST] = "sha256:0"
    changed = updated(other, other, nodes=more)

    assert same.placed() == []
    assert len(changed.placed()) == 1


@pytest.mark.parametrize(
    ("api_version", "kind", "is_steered"),
    [
        ("batch.volcano.sh/v1alpha1", "Job", True),
        ("ray.io/v1", "RayCluster", True),
        ("argoproj.io/v1alpha1", "Workflow", True),
        ("batch/v1", "Job", False),
        ("apps/v1", "ReplicaSet", False),
        ("kubeflow.org/v1", "PyTorchJob", False),
    ],
)
def test_pod_of_a_controller(api_version: str, kind: str, is_steered: bool) -> None:
    """It is steered itself where nothing above it can be."""
    owner = {"apiVersion": api_version, "kind": kind, "name": "x", "controller": True}
    pod = {**OBJECTS["Pod"], "metadata": {"ownerReferences": [owner]}}

    assert bool(Scene().steered(pod).patch) is is_steered


def test_pod_that_came_with_terms_of_its_owner_keeps_them() -> None:
    """A worker of a RayJob says nothing of the job; the RayJob was steered by all it says."""
    steered = Scene().steered(OBJECTS["Pod"]).patched
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "x", "controller": True}
    steered["metadata"]["ownerReferences"] = [owner]

    assert Scene(verdict=Verdict.UNKNOWN).steered(steered).patch == []
    assert Scene(need_mib=30_000).steered(steered).patch == []


def test_flat_mpi_job_is_not_steered() -> None:
    """Its launcher has no GPU and the same template: it would wait for a node with one."""
    obj = {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MPIJob",
        "spec": {"replicas": 2, "template": OBJECTS["Job"]["spec"]["template"]},
    }

    assert Scene().steered(obj).placed() == []
