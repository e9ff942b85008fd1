"""What a resource claim (DRA) asks of a device: memory, or a MIG profile.

    pod, container, documents -> Share

Read from the claims that were fetched: requests for capacity, and the profile that a selector
wants. Every other selector is left out: it can only make the cards fewer that a pod may use.
Source: kubernetes v1.36.3 `staging/src/k8s.io/api/resource/v1/types.go` (`DeviceCapacity`,
`CapacityRequirements`: a device that is not shared is handed out whole, so an amount is what it
has at least); kubernetes-sigs/dra-driver-nvidia-gpu (device classes, `profile`, `memory`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from admission.errors import RequestError
from admission.share import Share
from admission.values import Documents, Json
from admission.workloads.fields import at, entries, mapping, sequence, text
from admission.workloads.outside import body_of
from admission.workloads.quantities import whole_quantity

NOT_NVIDIA = ("gpu.amd.com", "gpu.intel.com")
MIG_CLASS = "mig.nvidia.com"
_MEMORY = "memory"
_PROFILE = re.compile(
    r"attributes\[\s*['\"][\w.]{1,60}['\"]\s*\]\.profile\s*==\s*['\"]([\w.+]{1,20})['\"]", re.ASCII
)


def claim_share(pod: Json, container: Json, path: str, documents: Documents) -> Share:
    """Return the least that the GPUs claimed by *container* at *path* have, and what names it.

    Without any amount or profile it is a whole device, whose share has neither.

    Raises:
        RequestError: if claims are malformed.
    """
    where = f"{path}.resources.claims"
    taken = _taken(container, path)
    whole = Share(text="a resource claim", key="", path=where)
    found: list[Share] = []
    for claim, place in entries(pod.get("resourceClaims"), "spec.resourceClaims"):
        name = text(claim.get("name"), f"{place}.name")
        if name not in taken:
            continue
        source = {**claim, **mapping(claim.get("source"), f"{place}.source")}
        template, own = source.get("resourceClaimTemplateName"), source.get("resourceClaimName")
        reference = f"resourceclaimtemplate/{template}" if template else f"resourceclaim/{own}"
        body = body_of(reference, documents)
        if body is None:
            kind, _, called = reference.partition("/")
            document = documents.get(reference)
            why = document.problem if document and document.problem else "was not read"
            unread = whole.unread(f"{kind} {called:.120}, which says what it asks for, {why}")
            return replace(unread, wanted=reference)
        devices = _shares(body, reference, whole)
        found += [share for request, share in devices if taken[name] in ("", request)]
    return _least(found, whole)


def _taken(container: Json, path: str) -> dict[str, str]:
    """Return the claims that a container takes, each with the one request it takes of it."""
    claims = mapping(container.get("resources"), f"{path}.resources").get("claims")
    return {
        text(claim.get("name"), f"{where}.name"): text(claim.get("request"), f"{where}.request")
        for claim, where in entries(claims, f"{path}.resources.claims")
    }


def _least(found: list[Share], whole: Share) -> Share:
    """Return what holds for every device: they may land on any of them."""
    for share in found:
        if share.problem:
            return share
    if len({share.profile for share in found}) > 1:
        return whole.unread("its claims ask for several kinds of device")
    sized = [share for share in found if share.nbytes is not None]
    if sized:
        return min(sized, key=lambda share: share.nbytes or 0)
    return found[0] if found else whole


def _shares(body: Json, reference: str, whole: Share) -> Iterator[tuple[str, Share]]:
    is_template = reference.startswith("resourceclaimtemplate/")
    spec = at(body, f"{reference}: ", *(("spec", "spec") if is_template else ("spec",)))
    devices = mapping(spec.get("devices"), f"{reference}: devices")
    for request, place in entries(devices.get("requests"), f"{reference}: devices.requests"):
        name = text(request.get("name"), f"{place}.name")
        for choice, where in _choices(request, place):
            device_class = text(choice.get("deviceClassName"), f"{where}.deviceClassName")
            if "gpu" in device_class.lower() or device_class == MIG_CLASS:
                yield name, _share(choice, device_class, where, whole)


def _choices(request: Json, place: str) -> Iterator[tuple[Json, str]]:
    """Yield each device that would do: any of alternatives may be what the pod gets."""
    available = sequence(request.get("firstAvailable"), f"{place}.firstAvailable")
    if available:
        yield from entries(list(available), f"{place}.firstAvailable")
        return
    exact = mapping(request.get("exactly"), f"{place}.exactly")
    yield exact or request, f"{place}.exactly" if exact else place


def _share(choice: Json, device_class: str, where: str, whole: Share) -> Share:
    if device_class in NOT_NVIDIA:
        return whole.unread(f"devices of {device_class} are not modelled; NVIDIA GPUs are")
    capacity = mapping(choice.get("capacity"), f"{where}.capacity")
    requests = mapping(capacity.get("requests"), f"{where}.capacity.requests")
    profile = _profile(choice, where)
    text_ = f"device class {device_class:.80}"
    for name, value in requests.items():
        if name.rpartition("/")[2] != _MEMORY:
            continue
        text_ = f"{name}: {value!s:.60}"
        number = whole_quantity(value)
        if not number:
            return whole.unread(f"{text_} is not an amount of memory")
        return Share(
            text=text_, key=name, path=whole.path, nbytes=number, profile=profile, is_floor=True
        )
    if device_class == MIG_CLASS and not profile:
        return whole.unread(f"{text_} without a profile or memory: slices differ")
    text_ = f"profile {profile}" if profile else text_
    return Share(text=text_, key="", path=whole.path, profile=profile)


def _profile(choice: Json, where: str) -> str:
    """Return the MIG profile that a selector asks for, empty if none does."""
    for selector, place in entries(choice.get("selectors"), f"{where}.selectors"):
        expression = mapping(selector.get("cel"), f"{place}.cel").get("expression")
        if not isinstance(expression, str | None):
            raise RequestError(f"{place}.cel.expression is not a string")
        if match := _PROFILE.search((expression or "")[:10_000]):
            return match[1]
    return ""
