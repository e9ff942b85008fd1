"""How to have a device (DRA) that holds the job.

    UnitJudgements -> one line of advice; with the claim templates beside the job -> those, changed

A ResourceClaimTemplate's spec is immutable and another object, which is never under review with the
job: the webhook patches nothing. Who creates both together can write the selector into it.
Source: NVIDIA/k8s-dra-driver-gpu 22407113, `cmd/gpu-kubelet-plugin/deviceinfo.go` (capacity
`memory`, the card's total in bytes); kubernetes v1.36.3 `staging/src/k8s.io/
dynamic-resource-allocation/cel`, `staging/src/k8s.io/api/resource/v1/types.go` (`DeviceRequest`;
in `v1beta1` it is flat; of `v1alpha2` nothing is written).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from admission.steer.candidates import candidates_of
from admission.values import Documents, Json, UnitJudgement
from admission.workloads.outside import body_of
from admission.workloads.resources import CLAIM
from estimator.units import MIB

CLASSES = ("gpu.nvidia.com", "mig.nvidia.com")
"""Device classes whose devices have that capacity."""
_WRITTEN = ("resource.k8s.io/v1", "resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2")
_OWN = "].memory"
"""A selector that has it speaks of memory already: it is the person's, and stays alone."""


def claim_advice(units: Iterable[UnitJudgement]) -> tuple[str, ...]:
    """Return the selector to put into the claim's template, for units whose GPUs are claimed."""
    needs = (_need(judged) for judged in units)
    lines = (f"hint: select a device that holds it: {selector(need)}" for need in needs if need)
    return tuple(dict.fromkeys(lines))


def claim_templates(units: Iterable[UnitJudgement], documents: Documents) -> tuple[Json, ...]:
    """Return those of *documents* that give *units* a device, with the selector written in.

    A template is not among them where every device holds the job, or where a selector in it says
    something about memory.
    """
    needs: dict[tuple[str, str], int] = {}
    for judged in units:
        need = _need(judged)
        for place in _requested(judged) if need else ():
            needs[place] = max(needs.get(place, 0), need)
    changed: dict[str, dict[str, Any]] = {}
    for (name, request), need in needs.items():
        body = changed.get(name) or body_of(f"resourceclaimtemplate/{name}", documents)
        if body is None or body.get("apiVersion") not in _WRITTEN:
            continue
        made = copy.deepcopy(dict(body))
        if _write(made, request, selector(need)):
            changed[name] = made
    return tuple(changed.values())


def selector(nbytes: int) -> str:
    """Return the CEL expression for devices with *nbytes* or more, rounded up to MiB."""
    return (
        "device.capacity['gpu.nvidia.com'].memory.compareTo"
        f"(quantity('{-(-nbytes // MIB)}Mi')) >= 0"
    )


def _need(judged: UnitJudgement) -> int:
    """Return what a device must have for a unit that claims one; 0 where any would do, or none."""
    if judged.unit.gpu_resource != CLAIM:
        return 0
    candidates = candidates_of([judged])
    needs = [found.need_bytes for found in candidates if found.holds]
    return min(needs) if needs and len(needs) < len(candidates) else 0


def _requested(judged: UnitJudgement) -> Iterator[tuple[str, str]]:
    """Yield the templates that a container's claims are made from, and the request it takes."""
    claims = (judged.unit.container_spec.get("resources") or {}).get("claims") or ()
    taken = {claim.get("name"): str(claim.get("request") or "") for claim in claims}
    for claim in judged.unit.pod.get("resourceClaims") or ():
        template = claim.get("resourceClaimTemplateName")
        if template and claim.get("name") in taken:
            yield str(template), taken[claim.get("name")]


def _write(template: dict[str, Any], request: str, expression: str) -> bool:
    """Write *expression* into the requests of *template* that mean GPUs; return whether it did.

    *request* is the one that is taken; empty for all of them.
    """
    requests = (((template.get("spec") or {}).get("spec") or {}).get("devices") or {}).get(
        "requests"
    )
    wrote = False
    for one in requests or ():
        # `request/subrequest` is how one of several alternatives is named.
        if request.partition("/")[0] not in ("", one.get("name")):
            continue
        for choice in one.get("firstAvailable") or [one.get("exactly") or one]:
            selectors = choice.get("selectors") or []
            is_theirs = any(_OWN in str(each) for each in selectors)
            if choice.get("deviceClassName") in CLASSES and not is_theirs:
                choice["selectors"] = [*selectors, {"cel": {"expression": expression}}]
                wrote = True
    return wrote
