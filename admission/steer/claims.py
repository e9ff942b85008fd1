"""What a person can write to have a device (DRA) that holds the job.

    UnitJudgement -> one line of advice

A ResourceClaimTemplate's spec is immutable and another object, which is never under review with the
job: nothing is patched.
Source: NVIDIA/k8s-dra-driver-gpu 22407113, `cmd/gpu-kubelet-plugin/deviceinfo.go` (capacity
`memory`, the card's total in bytes); kubernetes v1.36.3 `staging/src/k8s.io/
dynamic-resource-allocation/cel`.
"""

from __future__ import annotations

from collections.abc import Iterable

from admission.steer.candidates import candidates_of
from admission.values import UnitJudgement
from admission.workloads.resources import CLAIM
from estimator.units import MIB


def claim_advice(units: Iterable[UnitJudgement]) -> tuple[str, ...]:
    """Return the selector to put into the claim's template, for units whose GPUs are claimed."""
    lines = []
    for judged in units:
        if judged.unit.gpu_resource != CLAIM:
            continue
        candidates = candidates_of([judged])
        needs = [found.need_bytes for found in candidates if found.holds]
        if needs and len(needs) < len(candidates):
            lines.append(f"hint: select a device that holds it: {selector(min(needs))}")
    return tuple(dict.fromkeys(lines))


def selector(nbytes: int) -> str:
    """Return the CEL expression for devices with *nbytes* or more, rounded up to MiB."""
    return (
        "device.capacity['gpu.nvidia.com'].memory.compareTo"
        f"(quantity('{-(-nbytes // MIB)}Mi')) >= 0"
    )
