"""Which resources are GPUs, and how many a container asks for.

    container -> (resource name, count)

Limits count; requests stand in for limits that are not there, as published manifests write them.
Source of the vendors' names: docs/contracts.md 4 and each device plugin's documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, DecimalException

from admission.values import Json
from admission.workloads.fields import MAX_COUNT, is_unrendered, mapping, sequence, text, wrong
from admission.workloads.shares import shared_request

GPU = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
MIG_PREFIX = "nvidia.com/mig-"
CLAIM = "resource.k8s.io/claim"
"""Stands for a device asked for by a DRA claim."""

DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
"""Before the name of a device class: a claim of that class, written as a resource.

Source: `ResourceDeviceClassPrefix` in kubernetes v1.36.3
`staging/src/k8s.io/api/resource/v1/types.go` (KEP-5004).
"""
WHOLE_GPUS = f"{DEVICE_CLASS}gpu.nvidia.com"
_GPU_CLASS_WORDS = ("gpu", "mig.")

OTHER_VENDORS = ("amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
"""GPUs whose memory behaviour is not modelled."""

_SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
_MAX_DIGITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRequest:
    """The GPUs one container asks for."""

    resource: str
    count: int
    rendered: bool = True
    """False: the count is a template that was not rendered; `count` is then one."""
    limited: bool = True
    """False: asked for in `requests` only, which the API server refuses."""


def is_gpu(resource: str) -> bool:
    """Return whether *resource* counts NVIDIA GPUs or slices of them."""
    return resource in (GPU, SHARED) or resource.startswith(MIG_PREFIX)


def is_counted(resource: str) -> bool:
    """Return whether *resource* counts GPUs of any kind, modelled or not."""
    if resource.startswith(DEVICE_CLASS):
        return any(word in resource.removeprefix(DEVICE_CLASS) for word in _GPU_CLASS_WORDS)
    return is_gpu(resource) or resource in OTHER_VENDORS


def gpu_request(container: Json, path: str, *, claims: Mapping[str, int]) -> GpuRequest | None:
    """Return what *container* asks for, or None if that is no GPU.

    *claims* are the pod's resource claims that mean GPUs, with their number of devices.

    Raises:
        RequestError: if resources are not what Kubernetes accepts.
    """
    where = f"{path}.resources"
    resources = mapping(container.get("resources"), where)
    for key in ("limits", "requests"):
        amounts = mapping(resources.get(key), f"{where}.{key}")
        found = _of_amounts(amounts, f"{where}.{key}")
        if found is not None:
            name, number, rendered = found
            return GpuRequest(
                resource=name, count=number, rendered=rendered, limited=key == "limits"
            )
    if name := _left_empty(resources):
        return GpuRequest(resource=name, count=1, rendered=False)
    asked = 0
    for index, claim in enumerate(sequence(resources.get("claims"), f"{where}.claims")):
        name = text(
            mapping(claim, f"{where}.claims[{index}]").get("name"), f"{where}.claims[{index}].name"
        )
        asked += claims.get(name, 0)
    return GpuRequest(resource=CLAIM, count=asked) if asked else None


def quantity(value: object, path: str) -> int:
    """Return a whole count written as an integer or as a Kubernetes quantity (`"8"`, `2k`).

    Raises:
        RequestError: if it is neither, or not a whole number from 0 to 2^20.
    """
    accepted = "a whole number of GPUs"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong(path, value, accepted)
    if isinstance(value, int) and abs(value) > MAX_COUNT:
        raise wrong(path, value, accepted)
    digits = str(value).strip()
    suffix = digits.lstrip("+-.0123456789eE")
    number = digits.removesuffix(suffix) if suffix else digits
    if suffix not in _SUFFIXES or len(number) > _MAX_DIGITS:
        raise wrong(path, value, accepted)
    try:
        amount = Decimal(number) * _SUFFIXES[suffix]
        is_whole = 0 <= amount <= MAX_COUNT and amount == int(amount)
    except (DecimalException, OverflowError):
        raise wrong(path, value, accepted) from None
    if not is_whole:
        raise wrong(path, value, accepted)
    return int(amount)


def _left_empty(resources: Json) -> str:
    """Return the GPU resource whose number is null: left for somebody to fill in.

    An API server has turned it into 0 or dropped it, so only a file can hold one.
    """
    for key in ("limits", "requests"):
        for name, value in (resources.get(key) or {}).items():
            if value is None and is_gpu(name):
                return str(name)
    return ""


def _of_amounts(amounts: Json, path: str) -> tuple[str, int, bool] | None:
    """Return name, count and whether the count is rendered of the GPU resource in *amounts*.

    Whole GPUs of a device class are a claim; other classes have their own name, and no model.
    """
    for name, value in amounts.items():
        if not is_counted(name) or value is None:
            continue
        called = CLAIM if name == WHOLE_GPUS else name
        if is_unrendered(value):
            return called, 1, False
        number = quantity(value, f"{path}[{name}]")
        if number:
            return called, number, True
    shared = shared_request(amounts)
    return (*shared, True) if shared else None
