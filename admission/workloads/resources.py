"""Which resources are GPUs, and how many a container asks for.

    container -> (resource name, count)

Limits count; requests stand in for limits that are not there, as published manifests write them.
Source of the vendors' names: docs/contracts.md 4 and each device plugin's documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, DecimalException

from admission.values import Json
from admission.workloads.fields import MAX_COUNT, is_template, mapping, sequence, text, wrong

GPU = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
MIG_PREFIX = "nvidia.com/mig-"
CLAIM = "resource.k8s.io/claim"
"""Stands for a device asked for by a DRA claim."""

OTHER_VENDORS = ("amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
"""GPUs whose memory behaviour is not modelled."""

DECLARATIONS = (
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "volcano.sh/vgpu-number",
    "volcano.sh/vgpu-memory",
    "volcano.sh/gpu-memory",
    "volcano.sh/gpu-number",
    "koordinator.sh/gpu",
    "koordinator.sh/gpu-memory",
    "koordinator.sh/gpu-memory-ratio",
    "koordinator.sh/gpu.shared",
    "aliyun.com/gpu-mem",
    "tencent.com/vcuda-memory",
)
"""Shares of a card in somebody's own words: the budget is not the card."""

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


def gpu_request(container: Json, path: str, *, claims: frozenset[str]) -> GpuRequest | None:
    """Return what *container* asks for, or None if that is no GPU.

    *claims* are the names of the pod's resource claims that mean GPUs.

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
    asked = 0
    for index, claim in enumerate(sequence(resources.get("claims"), f"{where}.claims")):
        name = text(
            mapping(claim, f"{where}.claims[{index}]").get("name"), f"{where}.claims[{index}].name"
        )
        asked += name in claims
    return GpuRequest(resource=CLAIM, count=asked) if asked else None


def declarations(container: Json) -> tuple[str, ...]:
    """Return the names of *container*'s resources that declare a share of a card."""
    resources = container.get("resources") or {}
    names = {name for key in ("limits", "requests") for name in (resources.get(key) or {})}
    return tuple(name for name in DECLARATIONS if name in names)


def gpu_claims(pod: Json, path: str) -> frozenset[str]:
    """Return the names of the pod's resource claims whose own or template's name says GPU."""
    names = set()
    for index, item in enumerate(sequence(pod.get("resourceClaims"), f"{path}.resourceClaims")):
        where = f"{path}.resourceClaims[{index}]"
        claim = mapping(item, where)
        name = text(claim.get("name"), f"{where}.name")
        template = text(
            claim.get("resourceClaimTemplateName") or claim.get("resourceClaimName"), where
        )
        if "gpu" in name.lower() or "gpu" in template.lower():
            names.add(name)
    return frozenset(names)


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


def _of_amounts(amounts: Json, path: str) -> tuple[str, int, bool] | None:
    """Return name, count and whether the count is rendered of the GPU resource in *amounts*."""
    for name, value in amounts.items():
        if not (is_gpu(name) or name in OTHER_VENDORS) or value is None:
            continue
        if is_template(value):
            return name, 1, False
        number = quantity(value, f"{path}[{name}]")
        if number:
            return name, number, True
    for name in DECLARATIONS:
        if amounts.get(name) is not None:
            return name, 1, True
    return None
