"""MPIJob's older form: one template, whose command the launcher runs."""

from __future__ import annotations

from typing import Any

import pytest

from admission.workloads import read_workload
from tests.admission.workloads.objects import GPU


def _flat(limits: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "command": ["mpirun", "python", "x.py"]}
    if limits is not None:
        container["resources"] = {"limits": limits}
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MPIJob",
        "spec": {**spec, "template": {"spec": {"containers": [container]}}},
    }


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (_flat(gpus=16, gpusPerNode=8), (2, 8, "8")),
        (_flat(gpus=4, gpusPerNode=8), (1, 4, "4")),
        (_flat(gpus=4), (4, 1, "1")),
        (_flat(processingUnits=8, processingUnitsPerNode=4, slotsPerWorker=2), (2, 4, "2")),
        (_flat({GPU: 2}, replicas=3), (3, 2, "2")),
    ],
    ids=["gpus", "less-than-a-node", "one-each", "units", "replicas"],
)
def test_workers_share_the_gpus(obj: dict[str, Any], expected: tuple[int, int, str]) -> None:
    """`gpus` are spread over nodes of `gpusPerNode`; `replicas` have what the template asks for."""
    (unit,) = read_workload(obj).units

    slots = unit.injected["OMPI_MCA_orte_set_default_slots"]
    assert (unit.replicas, unit.gpus, slots) == expected
    assert unit.program.container["command"] == ["mpirun", "python", "x.py"]


@pytest.mark.parametrize(
    "obj",
    [
        _flat(processingUnits=8, processingResourceType="cpu"),
        _flat(replicas=2),
        _flat(),
        {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "spec": None},
    ],
)
def test_what_asks_for_no_gpu_is_no_unit(obj: dict[str, Any]) -> None:
    """Processing units may be processors."""
    assert read_workload(obj).units == ()


def test_gpus_that_nobody_filled_in_are_a_unit() -> None:
    """Their number is open."""
    (unit,) = read_workload(_flat(gpus="$GPUS")).units

    assert (unit.replicas, unit.are_replicas_known, unit.are_gpus_known) == (1, False, True)


def test_role_names_may_be_in_lower_case() -> None:
    """The operator brings them to its own spelling."""
    body = {"template": {"spec": {"containers": [{"resources": {"limits": {GPU: 1}}}]}}}
    launcher = {"template": {"spec": {"containers": [{"command": ["mpirun", "x"]}]}}}
    spec = {"mpiReplicaSpecs": {"launcher": launcher, "worker": body}}

    obj = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "spec": spec}
    (unit,) = read_workload(obj).units

    assert unit.program.path == "spec.mpiReplicaSpecs.launcher.template.spec.containers[0]"
