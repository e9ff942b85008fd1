"""From a spec and cards to estimates: the figures belong together."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import estimator
from estimator.catalog import generic_device
from estimator.pipeline import Job
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
    live_peak,
    spec_of,
)


def test_the_public_api_is_small() -> None:
    """What other people import is these names and no more."""
    assert sorted(estimator.__all__) == [
        "Device",
        "Estimate",
        "EstimatorError",
        "JobSpec",
        "estimate",
    ]


def test_the_peak_is_the_backward_pass() -> None:
    """At the peak weights, gradient, activation and its gradient are alive."""
    estimate = Job(spec=spec_of(8), frontend=StubFrontend()).on(card())

    assert estimate.peak.allocated_bytes == live_peak(8)
    assert (estimate.peak_at.step, estimate.peak_at.phase) == (1, "backward")
    assert estimate.breakdown.parameters == WEIGHTS
    assert estimate.breakdown.gradients == WEIGHTS
    assert estimate.breakdown.activations == 8 * ACTIVATION
    assert estimate.breakdown.temporary == 8 * ACTIVATION


@given(
    batch=st.integers(min_value=1, max_value=512),
    gib=st.integers(min_value=1, max_value=80),
    extra=st.integers(min_value=0, max_value=4 * GIB),
)
def test_figures_are_ordered_and_the_breakdown_adds_up(batch: int, gib: int, extra: int) -> None:
    """least <= enough and least <= peak <= most in each metric, on any card."""
    spec = spec_of(batch, runtime={"extraBytes": extra, "dataLoaderCudaWorkers": 2})

    found = Job(spec=spec, frontend=StubFrontend()).on(card(gib * GIB))

    assert found.least.device_bytes <= found.enough.device_bytes
    assert found.least.reserved_bytes <= found.peak.reserved_bytes <= found.most.reserved_bytes
    assert found.least.device_bytes <= found.peak.device_bytes <= found.most.device_bytes
    assert found.peak.allocated_bytes <= found.peak.reserved_bytes
    assert found.peak.allocated_bytes <= found.most.allocated_bytes
    assert found.breakdown.total() == found.peak.device_bytes


def test_cards_that_look_alike_share_a_trace() -> None:
    """A spec is traced once for every card with the same traits."""
    frontend = StubFrontend()
    job = Job(spec=spec_of(), frontend=frontend)

    estimates = [job.on(card(16 * GIB)), job.on(card(80 * GIB, name="large"))]

    assert frontend.num_traces == 1
    assert [estimate.device.name for estimate in estimates] == ["card", "large"]


def test_another_generation_is_traced_again() -> None:
    """Cards that choose other kernels get a trace of their own."""
    frontend = StubFrontend()
    job = Job(spec=spec_of(), frontend=frontend)

    job.on(card(capability=7))
    job.on(card(capability=8))

    assert frontend.num_traces == 2


def test_a_job_that_dies_is_described_as_it_would_run() -> None:
    """On a card that is too small the peak is the free run's, and a warning says so."""
    estimate = Job(spec=spec_of(512), frontend=StubFrontend()).on(card(4 * GIB))

    assert estimate.peak.allocated_bytes == live_peak(512)
    assert estimate.least.device_bytes > 4 * GIB
    assert len(estimate.warnings) == 1
    assert "card gives it 4.0 GiB" in estimate.warnings[0]


def test_a_generic_card_gives_figures_and_no_capacity() -> None:
    """Without a card the device is unknown, not zero."""
    estimate = Job(spec=spec_of(), frontend=StubFrontend()).on(generic_device())

    assert estimate.device.budget_bytes is None
    assert "device" in [unknown.code for unknown in estimate.unknowns]
    assert "budgetBytes" not in estimate.document()["device"]


def test_a_compiled_step_has_a_wider_interval() -> None:
    """torch.compile is traced as eager, so less is certain in both directions."""
    eager = Job(spec=spec_of(), frontend=StubFrontend()).on(card())
    compiled = Job(spec=spec_of(training={"compile": True}), frontend=StubFrontend()).on(card())

    assert compiled.least.reserved_bytes < eager.least.reserved_bytes
    assert compiled.most.reserved_bytes > eager.most.reserved_bytes
    assert compiled.method == "formula"


@pytest.mark.parametrize("limit", [0, 700 * MIB])
def test_the_jobs_own_limit_is_reported(limit: int) -> None:
    """A cap the job sets itself is in the answer, and absent where there is none."""
    spec = spec_of(4, runtime={"allocatorCapBytes": limit})

    document = Job(spec=spec, frontend=StubFrontend()).on(card()).document()

    assert document.get("allocatorLimitBytes", 0) == limit


class KeepingFrontend(StubFrontend):
    """The stub, with outputs of 32 MiB a sample that live into the next forward."""

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:  # noqa: ARG002 (a stub)
        """Return two steps that hand their outputs over."""
        builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
        builder.alloc(WEIGHTS, Role.PARAMETER)
        kept: list[int] = []
        for step in (1, 2):
            builder.at(step=step, phase=Phase.FORWARD, operator="aten.mm", module="head")
            output = builder.alloc(ACTIVATION * spec.input.batch_size, Role.ACTIVATION)
            for tensor in kept:
                builder.free(tensor)
            kept = [output]
        return builder.build(parameters=WEIGHTS // 4)


def test_a_last_smaller_batch_is_in_most_and_in_enough_and_not_in_least() -> None:
    """Outputs of a smaller batch leave no room for a full one's: one more segment of them."""
    batch, outputs = 8, 8 * ACTIVATION
    trained = Job(spec=spec_of(batch), frontend=KeepingFrontend()).on(card())
    used = Job(spec=spec_of(batch, phase="infer"), frontend=KeepingFrontend()).on(card())

    assert trained.peak == used.peak
    assert trained.least == used.least
    assert trained.enough.device_bytes - used.enough.device_bytes == outputs
    peak = trained.peak.reserved_bytes
    margin = used.most.reserved_bytes - peak
    added = math.hypot(margin, outputs + math.ceil(0.02 * peak))
    assert trained.most.reserved_bytes == peak + math.ceil(added)
    assert trained.most.device_bytes > used.most.device_bytes


def test_memory_the_driver_moves_is_on_the_card_as_far_as_there_is_room() -> None:
    """It is no allocator's, nothing needs it, and NVML shows what of it stayed."""
    plain = Job(spec=spec_of(), frontend=StubFrontend())
    paged = Job(spec=spec_of(), frontend=PagingFrontend())
    roomy, tight = card(16 * GIB), card(plain.on(card()).peak.device_bytes + 100 * MIB)

    before, after = plain.on(roomy), paged.on(roomy)

    assert after.peak.reserved_bytes == before.peak.reserved_bytes
    assert (after.least, after.enough) == (before.least, before.enough)
    assert after.peak.device_bytes - before.peak.device_bytes == GIB
    assert after.most.device_bytes - before.most.device_bytes == GIB
    assert after.breakdown.other == GIB
    assert after.breakdown.total() == after.peak.device_bytes
    assert paged.on(tight).peak.device_bytes == tight.usable_bytes
