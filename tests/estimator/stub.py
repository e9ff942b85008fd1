"""A frontend of a few lines, to test what comes after frontends without a framework."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

from estimator.device import Device
from estimator.spec import JobSpec, parse_spec
from estimator.trace import MANAGED_STREAM, EventKind, Phase, Role, Trace, TraceBuilder
from estimator.traits import Traits
from estimator.units import GIB, MIB

WEIGHTS = 64 * MIB
ACTIVATION = 32 * MIB
"""Bytes of one sample's activation; its gradient is as large."""


class StubFrontend:
    """One layer: weights, a gradient, and an activation that grows with the batch."""

    FRAMEWORK = "pytorch"

    def __init__(self) -> None:
        self.num_traces = 0

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:  # noqa: ARG002 (a stub)
        """Return two steps of one layer."""
        self.num_traces += 1
        builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
        builder.alloc(WEIGHTS, Role.PARAMETER)
        for step in (1, 2):
            builder.at(step=step, phase=Phase.FORWARD, operator="aten.relu", module="layer")
            output = builder.alloc(ACTIVATION * spec.input.batch_size, Role.ACTIVATION)
            builder.at(step=step, phase=Phase.BACKWARD, operator="aten.mul", module="layer")
            upstream = builder.alloc(ACTIVATION * spec.input.batch_size, Role.TEMPORARY)
            gradient = builder.alloc(WEIGHTS, Role.GRADIENT)
            for tensor in (output, upstream, gradient):
                builder.free(tensor)
        return builder.build(parameters=WEIGHTS // 4)


class PagingFrontend(StubFrontend):
    """The stub's layer, and states in memory that the driver moves."""

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:
        """Return the stub's steps with 1 GiB of managed memory from the first on."""
        trace = super().trace_job(spec, traits=traits)
        tensor, place = len(trace.sizes), trace.places[-1]
        return replace(
            trace,
            sizes=array("q", [*trace.sizes, GIB]),
            roles=bytes([*trace.roles, Role.OPTIMIZER]),
            streams=bytes([*trace.streams, MANAGED_STREAM]),
            kinds=bytes([*trace.kinds, EventKind.ALLOC]),
            ids=array("q", [*trace.ids, tensor]),
            places=array("q", [*trace.places, place]),
        )


def live_peak(batch: int) -> int:
    """Return the bytes alive in the backward pass of the stub's job."""
    return WEIGHTS + 2 * ACTIVATION * batch + WEIGHTS


def spec_of(batch: int = 8, **changes: Any) -> JobSpec:
    """Return the stub's job at *batch*."""
    document = {
        "framework": "pytorch",
        "frameworkVersion": "2.15.0",
        "model": {"source": "layers", "name": "stub"},
        "input": {"batchSize": batch},
        "training": {"optimizer": {"name": "adamw"}},
    }
    return parse_spec(document | changes)


def card(budget: int = 16 * GIB, *, name: str = "card", capability: int = 8) -> Device:
    """Return a card that gives *budget* bytes."""
    return Device(
        name=name,
        total_bytes=budget + 512 * MIB,
        reservation_bytes=512 * MIB,
        budget_bytes=budget,
        compute_capability=(capability, 0),
    )
