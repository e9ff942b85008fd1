"""Which of a pod's resource claims (DRA) mean GPUs, and how many devices they ask for.

    pod, documents -> claim's name -> devices

By the device class in the claim or its template, where that is among the documents; else by the
names that people gave them.
Source: kubernetes `staging/src/k8s.io/api/resource/v1/types.go` v1.36.3 (`DeviceRequest`), and the
older `v1beta1`, whose requests are flat, and `v1alpha2`, whose pods have a `source`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from admission.values import NO_DOCUMENTS, Documents, Json
from admission.workloads.fields import amount, at, entries, mapping, sequence, text
from admission.workloads.outside import body_of

_GPU_WORDS = ("gpu", "mig.nvidia.com")


def gpu_claims(pod: Json, path: str, documents: Documents = NO_DOCUMENTS) -> Mapping[str, int]:
    """Return the claims of *pod* that mean GPUs, with how many devices each asks for.

    A claim that is described nowhere and has GPU in its name or its template's is one device.

    Raises:
        RequestError: if claims are malformed.
    """
    found = {}
    for claim, where in entries(pod.get("resourceClaims"), f"{path}.resourceClaims"):
        name = text(claim.get("name"), f"{where}.name")
        source = {**claim, **mapping(claim.get("source"), f"{where}.source")}
        template = text(
            source.get("resourceClaimTemplateName"), f"{where}.resourceClaimTemplateName"
        )
        own = text(source.get("resourceClaimName"), f"{where}.resourceClaimName")
        reference = f"resourceclaimtemplate/{template}" if template else f"resourceclaim/{own}"
        devices = _devices(reference, documents)
        if devices is None:
            devices = int(_is_gpu(name) or _is_gpu(template or own))
        if devices:
            found[name] = devices
    return found


def _devices(reference: str, documents: Documents) -> int | None:
    """Return how many GPUs the claim that was fetched asks for, None if it was not fetched."""
    body = body_of(reference, documents)
    if body is None:
        return None
    is_template = reference.startswith("resourceclaimtemplate/")
    devices = at(body, f"{reference}: ", *(("spec", "spec") if is_template else ("spec",)))
    where = f"{reference}: devices.requests"
    requests = mapping(devices.get("devices"), f"{reference}: devices").get("requests")
    return sum(_number(request, place) for request, place in _first_choices(requests, where))


def _first_choices(requests: object, where: str) -> Iterator[tuple[Json, str]]:
    """Yield the requests; of alternatives the one that is tried first."""
    for request, place in entries(requests, where):
        choices = sequence(request.get("firstAvailable"), f"{place}.firstAvailable")
        if choices:
            yield mapping(choices[0], f"{place}.firstAvailable[0]"), f"{place}.firstAvailable[0]"
        else:
            exact = mapping(request.get("exactly"), f"{place}.exactly")
            yield exact or request, f"{place}.exactly" if exact else place


def _number(request: Json, place: str) -> int:
    device_class = text(request.get("deviceClassName"), f"{place}.deviceClassName")
    if not _is_gpu(device_class):
        return 0
    return amount(request.get("count"), f"{place}.count").number or 1


def _is_gpu(name: str) -> bool:
    return any(word in name.lower() for word in _GPU_WORDS)
