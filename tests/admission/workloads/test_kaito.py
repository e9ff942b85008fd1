"""KAITO Workspaces: a program, GPUs and nodes without any container."""

from __future__ import annotations

from typing import Any

import pytest

from admission.codes import ReasonCode
from admission.workloads import read_workload
from admission.workloads.instances import gpus_of


def _workspace(
    resource: dict[str, Any] | None = None, version: str = "v1beta1", **tuning: Any
) -> dict[str, Any]:
    return {
        "apiVersion": f"kaito.sh/{version}",
        "kind": "Workspace",
        "metadata": {"name": "w"},
        "resource": {"instanceType": "Standard_NC24ads_A100_v4"} if resource is None else resource,
        "tuning": {"preset": {"name": "phi-4"}, "method": "lora", **tuning},
    }


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_tuning_is_a_program_of_its_own(version: str) -> None:
    """With KAITO's variables, on the nodes that it asks for."""
    (unit,) = read_workload(_workspace(version=version)).units

    assert unit.container_spec["command"] == ["kaito-tuning", "--preset=phi-4", "--method=lora"]
    assert unit.container_spec["env"] == [
        {"name": "PYTORCH_CUDA_ALLOC_CONF", "value": "expandable_segments:True"}
    ]
    assert unit.pod["nodeSelector"] == {
        "node.kubernetes.io/instance-type": "Standard_NC24ads_A100_v4"
    }


def test_phi3_gets_its_modules() -> None:
    """KAITO sets them for this family only."""
    (unit,) = read_workload(_workspace(preset={"name": "phi-3.5-mini-instruct"})).units

    assert unit.container_spec["env"][-1]["name"] == "DEFAULT_TARGET_MODULES"


def test_configuration_is_mounted_where_the_program_looks() -> None:
    """The ConfigMap of the Workspace's own namespace."""
    (unit,) = read_workload(_workspace(config="mine")).units

    assert unit.container_spec["command"][-1] == "--config=/mnt/config/training_config.yaml"
    assert unit.container_spec["volumeMounts"] == [{"name": "config", "mountPath": "/mnt/config"}]
    assert unit.pod["volumes"] == [{"name": "config", "configMap": {"name": "mine"}}]


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ({"instanceType": "Standard_NC96ads_A100_v4"}, ("nvidia.com/gpu", 4, True)),
        ({"instanceType": "standard_nc12s_v3"}, ("nvidia.com/gpu", 2, True)),
        ({"instanceType": "Standard_Of_Tomorrow"}, ("nvidia.com/gpu", 1, False)),
        ({"labelSelector": {"matchLabels": {"a": "b"}}}, ("nvidia.com/gpu", 1, False)),
        (
            {"partition": {"mode": "mig", "profile": "1g.10gb"}},
            ("nvidia.com/mig-1g.10gb", 1, True),
        ),
        (
            {"partition": {"mode": "mig", "profile": "3g.40gb", "count": 2}},
            ("nvidia.com/mig-3g.40gb", 2, True),
        ),
    ],
)
def test_gpus_are_those_of_the_instance(
    resource: dict[str, Any], expected: tuple[str, int, bool]
) -> None:
    """A type that no table has leaves them open; a partition is a slice."""
    (unit,) = read_workload(_workspace(resource)).units

    assert (unit.gpu_resource, unit.gpus, unit.are_gpus_known) == expected


def test_inference_is_no_training() -> None:
    """A Workspace serves as a rule."""
    obj = _workspace()
    del obj["tuning"]
    obj["inference"] = {"preset": {"name": "phi-4"}}

    workload = read_workload(obj)

    assert (workload.units, workload.skip) == ((), ReasonCode.NO_TRAINING)


@pytest.mark.parametrize(
    ("name", "gpus"), [("p5.48xlarge", 8), ("g5.12xlarge", 4), ("", None), ("x", None)]
)
def test_table_of_instances(name: str, gpus: int | None) -> None:
    """NVIDIA cards only."""
    assert gpus_of(name) == gpus
