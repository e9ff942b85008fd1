"""Jobs to trace, and what their traces hold.

settings -> Trace; Trace -> bytes
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.frontends.mxnet import trace_job
from estimator.spec import parse_spec
from estimator.trace import EventKind, Role, Trace
from estimator.traits import Traits

CARD = Traits(flash_attention=False, efficient_attention=True, native_bf16=False)


def document(
    *,
    name: str = "resnet18_v1",
    classes: int = 10,
    batch: int = 2,
    image: tuple[int, int, int] | None = None,
    compile_: object = True,
    optimizer: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Return the spec of a job; *others* are merged into it, part by part."""
    spec: dict[str, Any] = {
        "framework": "mxnet",
        "frameworkVersion": "1.9.1",
        "model": {"source": "mxnet", "name": name, "numLabels": classes},
        "input": {"batchSize": batch},
        "training": {
            "optimizer": dict(optimizer or {"name": "sgd", "momentum": 0.9}),
            "compile": compile_,
        },
        "runtime": {"env": dict(env or {})},
    }
    if image is not None:
        spec["input"]["imageSize"] = list(image)
    for key, value in others.items():
        is_part = isinstance(value, dict) and isinstance(spec.get(key), dict)
        spec[key] = {**spec[key], **value} if is_part else value
    return spec


def traced(**settings: Any) -> Trace:
    """Return the trace of a job."""
    return trace_job(parse_spec(document(**settings)), traits=CARD)


def by_role(trace: Trace) -> dict[Role, int]:
    """Return the bytes of all tensors of each role."""
    totals: dict[Role, int] = {}
    for size, role in zip(trace.sizes, trace.roles, strict=True):
        totals[Role(role)] = totals.get(Role(role), 0) + size
    return totals


def live_peak(trace: Trace, *, without: Role | None = None) -> int:
    """Return the most bytes that live at once, those of one role left out."""
    live = peak = 0
    for kind, tensor in zip(trace.kinds, trace.ids, strict=True):
        if kind not in (EventKind.ALLOC, EventKind.FREE) or trace.roles[tensor] == without:
            continue
        live += trace.sizes[tensor] if kind == EventKind.ALLOC else -trace.sizes[tensor]
        peak = max(peak, live)
    return peak
