"""Which resources are GPUs, in which spellings, and what a pod needs in all."""

from __future__ import annotations

from typing import Any

import pytest

from admission.errors import RequestError
from admission.workloads import read_workload
from admission.workloads.units import pod_gpus


def _units(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> Any:
    pod = {"containers": list(containers), "initContainers": list(init)}
    return read_workload({"apiVersion": "v1", "kind": "Pod", "spec": pod}).units


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"limits": {"nvidia.com/gpu": 2}}, ("nvidia.com/gpu", 2)),
        ({"limits": {"nvidia.com/gpu": "8"}}, ("nvidia.com/gpu", 8)),
        ({"limits": {"nvidia.com/gpu": "1k"}}, ("nvidia.com/gpu", 1000)),
        ({"requests": {"nvidia.com/gpu": 4}}, ("nvidia.com/gpu", 4)),
        ({"limits": {"nvidia.com/mig-3g.40gb": 1}}, ("nvidia.com/mig-3g.40gb", 1)),
        ({"limits": {"nvidia.com/gpu.shared": 1}}, ("nvidia.com/gpu.shared", 1)),
        ({"limits": {"amd.com/gpu": 1}}, ("amd.com/gpu", 1)),
        ({"limits": {"nvidia.com/gpu": "$GPU_PER_NODE"}}, ("nvidia.com/gpu", 1)),
    ],
)
def test_gpu_requests(resources: dict[str, Any], expected: tuple[str, int]) -> None:
    """Integers, quantities, requests without limits and templates all ask for GPUs."""
    (unit,) = _units({"name": "train", "resources": resources})

    assert (unit.gpu_resource, unit.gpus) == expected


@pytest.mark.parametrize(
    "resources",
    [
        None,
        {},
        {"limits": None},
        {"limits": {"cpu": "4"}},
        {"limits": {"nvidia.com/gpu": None}},
        {"limits": {"nvidia.com/gpu": 0}},
        {"limits": {"nvidia.com/gpu": "0"}},
    ],
)
def test_no_gpu_is_no_unit(resources: dict[str, Any] | None) -> None:
    """Null and zero ask for nothing."""
    assert _units({"name": "train", "resources": resources}) == ()


def test_claims_that_name_a_gpu_are_units() -> None:
    """A DRA claim with GPU in its name is a GPU we cannot judge, not a CPU job."""
    pod = {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "slice"}, {"name": "nic"}],
        "containers": [
            {"name": "a", "resources": {"claims": [{"name": "gpu"}]}},
            {"name": "b", "resources": {"claims": [{"name": "nic"}]}},
        ],
    }

    units = read_workload({"apiVersion": "v1", "kind": "Pod", "spec": pod}).units

    assert [(unit.container, unit.gpu_resource) for unit in units] == [
        ("a", "resource.k8s.io/claim")
    ]


def test_plain_init_containers_count_and_are_no_units() -> None:
    """An init container with more GPUs than the rest decides where the pod may go."""
    gpus = {"limits": {"nvidia.com/gpu": 4}}
    one = {"limits": {"nvidia.com/gpu": 1}}

    (unit,) = _units(
        {"name": "train", "resources": one}, init=({"name": "check", "resources": gpus},)
    )

    assert (unit.container, unit.gpus, unit.pod_gpus) == ("train", 1, 4)


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([(False, False, 1), (False, False, 2)], 1 + 2),
        ([(True, False, 4), (False, False, 1)], 4),
        ([(True, True, 2), (False, False, 1)], 2 + 1),
        ([(True, True, 2), (True, False, 3), (False, False, 1)], 2 + 3),
        ([(True, False, 3), (True, True, 2), (False, False, 2)], 2 + 2),
        ([], 0),
    ],
)
def test_effective_count(requests: list[tuple[bool, bool, int]], expected: int) -> None:
    """The larger of any init container, with what already runs beside it, and the sum."""
    assert pod_gpus(requests) == expected


def test_numbers_that_count_nothing_are_refused() -> None:
    """An exponent without end is the request's fault, not ours."""
    longest = 10**60_000
    for value in ("1e999999999", "-1", "1.5", longest, -longest, "9" * 30):
        with pytest.raises(RequestError, match="whole number of GPUs"):
            _units({"name": "train", "resources": {"limits": {"nvidia.com/gpu": value}}})
