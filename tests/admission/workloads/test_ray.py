"""RayJob and RayCluster: groups, the driver, and its environment."""

from __future__ import annotations

from typing import Any

import pytest

from admission.codes import ReasonCode
from admission.errors import RequestError
from admission.workloads import read_workload
from tests.admission.workloads.objects import GPU, template


def _job(
    entrypoint: str | None = "python x.py",
    environment: str = "",
    groups: tuple[dict[str, Any], ...] = (),
    **cluster: Any,
) -> dict[str, Any]:
    head = {"name": "ray-head", "image": "head", "env": [{"name": "A", "value": "1"}]}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "spec": {
            "entrypoint": entrypoint,
            "runtimeEnvYAML": environment,
            "rayClusterSpec": {
                "headGroupSpec": {"template": {"spec": {"containers": [head]}}},
                "workerGroupSpecs": list(groups or (_group(),)),
                **cluster,
            },
        },
    }


def _group(**fields: Any) -> dict[str, Any]:
    return {"groupName": "g", "replicas": 2, "template": template(), **fields}


def test_groups_run_the_entrypoint_on_the_head() -> None:
    """Through a shell, in the head's image, with the head's variables."""
    (unit,) = read_workload(_job("cd x && python y.py")).units

    program = unit.program
    assert (unit.role, unit.replicas, program.path) == ("g", 2, "spec.entrypoint")
    assert program.container["image"] == "head"
    assert program.container["command"] == ["/bin/bash", "-c", "cd x && python y.py"]
    assert program.container["env"] == [{"name": "A", "value": "1"}]


@pytest.mark.parametrize(
    ("environment", "framework", "start"),
    [
        ("pip: [torch, 'transformers==4.40.0']", "pytorch", "pip install torch"),
        ("pip: {packages: ['torch==2.3.1']}", "pytorch", "pip install torch==2.3.1"),
        ("pip: [tensorflow, torch]", "", "pip install tensorflow"),
        ("pip: requirements.txt", "", "python x.py"),
        ("{a: [", "", "python x.py"),
        ("- 1", None, ""),
    ],
)
def test_runtime_environment_tells_packages(
    environment: str, framework: str | None, start: str
) -> None:
    """They are installed before the driver starts; two frameworks tell nothing."""
    if framework is None:
        with pytest.raises(RequestError, match=r"^spec\.runtimeEnvYAML"):
            read_workload(_job(environment=environment))
        return

    workload = read_workload(_job(environment=environment))

    assert workload.framework == framework
    command = workload.units[0].program.container["command"][-1]
    assert command.startswith(start)
    assert command.endswith("python x.py")


def test_runtime_environment_sets_variables() -> None:
    """After the head's own."""
    (unit,) = read_workload(_job(environment="env_vars: {BATCH: 8}")).units

    assert unit.program.container["env"][-1] == {"name": "BATCH", "value": "8"}


@pytest.mark.parametrize(
    ("group", "cluster", "replicas", "known"),
    [
        ({"numOfHosts": 4}, {}, 8, True),
        ({"replicas": None, "minReplicas": 3}, {}, 3, True),
        ({"replicas": 9, "maxReplicas": 4}, {}, 4, True),
        ({"replicas": 0, "maxReplicas": 4}, {"enableInTreeAutoscaling": True}, 1, True),
        ({"replicas": "NUM_NODES"}, {}, 1, False),
    ],
)
def test_how_many_pods_a_group_has(
    group: dict[str, Any], cluster: dict[str, Any], replicas: int, known: bool
) -> None:
    """Within its bounds; a group that may grow has at least one."""
    (unit,) = read_workload(_job(groups=(_group(**group),), **cluster)).units

    assert (unit.replicas, unit.are_replicas_known) == (replicas, known)


def test_a_group_of_none_starts_nothing() -> None:
    """Without autoscaling nobody adds to it."""
    assert read_workload(_job(groups=(_group(replicas=0),))).units == ()


@pytest.mark.parametrize("entrypoint", [None, "", " "])
def test_without_an_entrypoint_there_is_no_job(entrypoint: str | None) -> None:
    """It waits for somebody to submit one."""
    workload = read_workload(_job(entrypoint))

    assert (workload.units, workload.skip) == ((), ReasonCode.NO_JOB)


@pytest.mark.parametrize(("gpus", "skip"), [(1, ReasonCode.NO_JOB), (0, ReasonCode.NO_GPU)])
def test_a_cluster_holds_no_job(gpus: int, skip: ReasonCode) -> None:
    """Though its cards are for training; one without cards is none of our business."""
    spec = {"headGroupSpec": {"template": template(gpus=gpus)}}

    workload = read_workload({"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": spec})

    assert (workload.units, workload.skip, workload.observe_only) == ((), skip, True)


def test_placeholders_in_a_cluster_are_no_mistake() -> None:
    """A file that nobody has filled in yet is read as far as it goes."""
    group = _group(replicas="PLACEHOLDER_NODES", template=template(gpus="PLACEHOLDER_GPUS"))
    obj = _job(groups=(group,))

    (unit,) = read_workload(obj).units

    assert (unit.gpus, unit.are_gpus_known, unit.gpu_resource) == (1, False, GPU)
