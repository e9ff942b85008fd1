"""The account of a job is that of its estimate."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.device import Device
from estimator.pipeline import Job
from estimator.report.job import account_on
from estimator.report.records import JobAccount
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


def of(batch: int = 8, *, device: Device | None = None, **changes: Any) -> JobAccount:
    """Return the account of the stub's job."""
    return account_on(
        Job(spec=spec_of(batch, **changes), frontend=StubFrontend()), device or card()
    )


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
def test_the_usage_is_the_estimates_peak(
    batch: int, device: Device, changes: dict[str, Any]
) -> None:
    """On cards that are large, tight and too small, and whatever allocator the job has."""
    estimate = Job(spec=spec_of(batch, **changes), frontend=StubFrontend()).on(device)

    found = of(batch, device=device, **changes)

    assert found.usage == estimate.peak
    assert found.usage.device_bytes == (
        found.account.reserved_bytes
        + found.context_bytes
        + found.libraries_bytes
        + found.communication_bytes
        + found.other_bytes
    )
    assert (found.spec_digest, found.assumptions) == (estimate.spec_digest, estimate.assumptions)


def test_memory_the_driver_moves_is_beside_the_allocators() -> None:
    """As in the estimate: on the card as far as there is room."""
    job = Job(spec=spec_of(), frontend=PagingFrontend())
    tight = card(of().usage.device_bytes + 100 * MIB)

    roomy, full = account_on(job, card()), account_on(job, tight)

    assert roomy.usage == job.on(card()).peak
    assert roomy.other_bytes == GIB
    assert full.usage.device_bytes == tight.usable_bytes


def test_every_tensor_of_the_stub_is_a_taking() -> None:
    """Nothing is free before the second step, and the second step takes nothing."""
    found = of(8)

    assert [(row.role, row.bytes, row.at.step) for row in found.account.rows] == [
        ("parameters", WEIGHTS, 0),
        ("activations", 8 * ACTIVATION, 1),
        ("temporary", 8 * ACTIVATION, 1),
        ("gradients", WEIGHTS, 1),
    ]
    assert found.limit_bytes is None


def test_a_limit_is_named_only_if_the_run_came_up_against_it() -> None:
    """The stub has nothing to give back: a cap it dies of is left out of the account."""
    assert of(8, runtime={"allocatorCapBytes": 600 * MIB}).limit_bytes is None
    assert of(8, runtime={"allocatorCapBytes": 8 * GIB}).limit_bytes is None
