"""The drawing of a job is of the run its estimate describes."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.device import Device
from estimator.report.drawing import JobDrawing
from estimator.report.drawn import job_drawing, told_by
from estimator.spec import JobSpec
from estimator.trace import Phase, Role, Trace, TraceBuilder
from estimator.traits import Traits
from estimator.units import GIB, MIB
from tests.estimator.stub import (
    ACTIVATION,
    WEIGHTS,
    PagingFrontend,
    StubFrontend,
    card,
    spec_of,
)

EXPANDABLE = {"env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}}


class WastefulFrontend:
    """A free block that serves no other request: a cap makes the allocator give it back."""

    FRAMEWORK = "pytorch"

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:  # noqa: ARG002 (a stub)
        """Return 100 MiB that die before 120 MiB are asked for."""
        builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
        builder.at(step=1, phase=Phase.FORWARD, operator="aten.relu", module="layer")
        builder.free(builder.alloc(100 * MIB, Role.ACTIVATION))
        builder.free(builder.alloc(120 * MIB, Role.ACTIVATION))
        return builder.build()


def drawn(batch: int = 8, *devices: Device, **changes: Any) -> JobDrawing:
    """Return the drawing of the stub's job."""
    return job_drawing(spec_of(batch, **changes), devices or (card(),), frontend=StubFrontend())


@pytest.mark.parametrize(
    ("batch", "device", "changes"),
    [
        (8, card(), {}),
        (8, card(), {"runtime": EXPANDABLE}),
        (8, card(), {"runtime": {"extraBytes": GIB, "dataLoaderCudaWorkers": 2}}),
        (400, card(26 * GIB), {}),
        (400, card(4 * GIB), {}),
        (8, card(), {"runtime": {"allocatorCapBytes": 620 * MIB}}),
    ],
)
def test_the_run_is_that_of_the_estimate(
    batch: int, device: Device, changes: dict[str, Any]
) -> None:
    """On cards that are large, tight and too small, and whatever allocator the job has."""
    found = drawn(batch, device, **changes)

    (rank,) = found.ranks
    estimate = found.estimate
    assert rank.usage == estimate.peak
    assert rank.peak_at == estimate.peak_at
    assert rank.usage.device_bytes == rank.usage.reserved_bytes + rank.beside_bytes()
    assert rank.tree.bytes == rank.usage.allocated_bytes
    at = rank.timeline.events.index(rank.peak_event)
    breakdown = estimate.breakdown.model_dump()
    for role, column in rank.timeline.live.items():
        beside = rank.communication_bytes if role == "communication" else 0
        assert column[at] + beside == breakdown[role]


def test_memory_the_driver_moves_is_in_the_drawing() -> None:
    """Beside the allocator's, as in the estimate."""
    found = job_drawing(spec_of(), (card(),), frontend=PagingFrontend())

    (rank,) = found.ranks
    assert rank.usage == found.estimate.peak
    assert rank.other_bytes == GIB


def test_the_tensors_of_the_peak_are_named() -> None:
    """Backward of the first step: weights, the activation, its gradient, the weights' gradient."""
    (rank,) = drawn(8).ranks

    assert rank.num_tensors == 4
    assert [(each.bytes, each.role, each.born.module) for each in rank.largest] == [
        (8 * ACTIVATION, "activations", "layer"),
        (8 * ACTIVATION, "temporary", "layer"),
        (WEIGHTS, "parameters", ""),
        (WEIGHTS, "gradients", "layer"),
    ]


def test_the_smallest_card_that_holds_the_job_is_drawn() -> None:
    """If none does, the largest: it shows how much is missing."""
    small, middle, large = card(GIB), card(8 * GIB, name="middle"), card(80 * GIB, name="large")

    assert drawn(8, large, small, middle).estimate.device.name == "middle"
    assert drawn(4000, small, middle, large).estimate.device.name == "large"


def test_a_card_of_unknown_size_is_drawn_only_if_it_is_alone() -> None:
    """There is no verdict on it."""
    generic = Device(
        name="generic",
        total_bytes=None,
        reservation_bytes=0,
        budget_bytes=None,
        compute_capability=(8, 0),
    )

    found = drawn(8, generic, card(GIB))

    assert told_by(found.estimates) == found.drawn == 1
    assert drawn(8, generic).drawn == 0


def test_a_run_that_came_up_against_a_limit_says_so() -> None:
    """One that died of it is drawn as it would be without one."""
    capped = job_drawing(
        spec_of(8, runtime={"allocatorCapBytes": 150 * MIB}),
        [card()],
        frontend=WastefulFrontend(),
    )

    assert capped.ranks[0].limit_bytes == 150 * MIB
    assert capped.ranks[0].usage == capped.estimate.peak
    assert capped.ranks[0].usage.reserved_bytes == 120 * MIB
    assert drawn(8, runtime={"allocatorCapBytes": 100 * MIB}).ranks[0].limit_bytes is None
    assert drawn(8).ranks[0].limit_bytes is None
