"""Which resources are GPUs, in which spellings, and what a pod needs in all."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from admission.errors import RequestError
from admission.values import Document
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
        (
            {"limits": {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 2}},
            ("resource.k8s.io/claim", 2),
        ),
        (
            {"limits": {"deviceclass.resource.kubernetes.io/mig.nvidia.com": 1}},
            ("deviceclass.resource.kubernetes.io/mig.nvidia.com", 1),
        ),
        ({"limits": {"nvidia.com/gpu": "$GPU_PER_NODE"}}, ("nvidia.com/gpu", 1)),
        ({"limits": {"nvidia.com/gpu": "{{ gpus }}"}}, ("nvidia.com/gpu", 1)),
        ({"limits": {"nvidia.com/gpu": "PLACEHOLDER_GPUS"}}, ("nvidia.com/gpu", 1)),
        ({"limits": {"nvidia.com/gpu": "<gpus>"}}, ("nvidia.com/gpu", 1)),
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
        {"limits": {"nvidia.com/gpu": 0}},
        {"limits": {"nvidia.com/gpu": "0"}},
    ],
)
def test_no_gpu_is_no_unit(resources: dict[str, Any] | None) -> None:
    """Nothing and zero ask for nothing."""
    assert _units({"name": "train", "resources": resources}) == ()


def test_a_null_number_of_gpus_was_left_to_be_filled_in() -> None:
    """A file that names the resource and no number is a GPU job; a number elsewhere counts."""
    empty = {"limits": {"nvidia.com/gpu": None}, "requests": {"nvidia.com/gpu": None}}
    half = {"limits": {"nvidia.com/gpu": None}, "requests": {"nvidia.com/gpu": 8}}

    (left_empty,) = _units({"name": "train", "resources": empty})
    (told,) = _units({"name": "train", "resources": half})

    assert (left_empty.gpus, left_empty.are_gpus_known) == (1, False)
    assert (told.gpus, told.are_gpus_known) == (8, True)


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


TEMPLATE = "resourceclaimtemplate/slice"
EXACT = "{name: r, exactly: {deviceClassName: gpu.example.com, count: 2}}"


@pytest.mark.parametrize(
    ("claim", "text", "gpus"),
    [
        (
            "resourceClaimTemplateName: slice",
            f"spec: {{spec: {{devices: {{requests: [{EXACT}]}}}}}}",
            2,
        ),
        (
            "source: {resourceClaimTemplateName: slice}",
            "spec: {spec: {devices: {requests: [{deviceClassName: mig.nvidia.com}]}}}",
            1,
        ),
        (
            "resourceClaimTemplateName: slice",
            "spec: {spec: {devices: {requests: [{firstAvailable: "
            "[{deviceClassName: gpu.x, count: 4}, {deviceClassName: gpu.x, count: 8}]}]}}}",
            4,
        ),
        (
            "resourceClaimTemplateName: slice",
            "spec: {spec: {devices: {requests: [{exactly: {deviceClassName: nic.example.com}}]}}}",
            0,
        ),
        ("resourceClaimTemplateName: slice", "spec: null", 0),
    ],
)
def test_claims_are_what_their_template_says(claim: str, text: str, gpus: int) -> None:
    """The device class decides, whatever the claim is called."""
    pod = {
        "resourceClaims": [{"name": "gpu", **yaml.safe_load(f"{{{claim}}}")}],
        "containers": [{"resources": {"claims": [{"name": "gpu"}]}}],
    }
    documents = {TEMPLATE: Document(files={"": text})}

    obj = {"apiVersion": "v1", "kind": "Pod", "spec": pod}
    units = read_workload(obj, documents=documents).units

    assert [unit.gpus for unit in units] == [gpus] * bool(gpus)


def test_a_claim_of_its_own_is_looked_up_too() -> None:
    """`resourceClaimName`: shared by several pods."""
    pod = {
        "resourceClaims": [{"name": "c", "resourceClaimName": "mine"}],
        "containers": [{"resources": {"claims": [{"name": "c"}]}}],
    }
    text = f"spec: {{devices: {{requests: [{EXACT}]}}}}"

    obj = {"apiVersion": "v1", "kind": "Pod", "spec": pod}
    documents = {"resourceclaim/mine": Document(files={"": text})}

    assert [unit.gpus for unit in read_workload(obj, documents=documents).units] == [2]
    assert read_workload(obj).units == ()


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
