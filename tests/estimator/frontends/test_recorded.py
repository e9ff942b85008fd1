"""A recorded trace on cards: the recorded kind, and others."""

from __future__ import annotations

import pytest

from estimator.errors import UnsupportedJobError
from estimator.fit import fit
from estimator.frontends.recorded import Recorded, on_card
from estimator.notes import AssumptionCode
from estimator.pipeline import Job
from estimator.spec import parse_spec
from estimator.trace import (
    AT_MOST,
    OTHER_CARD,
    Kernel,
    Method,
    Role,
    TensorFacts,
    Trace,
    TraceBuilder,
)
from estimator.tracefile import Recording, recorded
from estimator.traits import Traits, traits_of
from tests.estimator.stub import WEIGHTS, StubFrontend, card, spec_of

AMPERE = Traits(flash_attention=True, efficient_attention=True, native_bf16=True)
TURING = Traits(flash_attention=False, efficient_attention=True, native_bf16=False)
FLASH = "aten._scaled_dot_product_flash_attention"
EFFICIENT = "aten._scaled_dot_product_efficient_attention"


def trace_with(operator: str | None, *, dtype: str = "float16") -> Trace:
    """Return a trace that calls *operator*, or nothing."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    builder.alloc(WEIGHTS, Role.PARAMETER)
    if operator is not None:
        facts = TensorFacts(shape=(1, 8, 64, 64), dtype=dtype)
        builder.kernel(Kernel(operator=operator, operands=(facts, facts, facts)))
    return builder.build()


def stub_recording(*, traits: Traits = AMPERE) -> Recording:
    """Return the stub's job, recorded."""
    trace = StubFrontend().trace_job(spec_of(8), traits=traits)
    return recorded(spec_of(8), traits=traits, trace=trace)


def test_a_recorded_job_needs_what_the_traced_one_does() -> None:
    """The figures on a card of the recorded kind are those of the frontend."""
    recording = stub_recording()

    traced = Job(spec=spec_of(8), frontend=StubFrontend()).on(card())
    found = Job(spec=recording.spec, frontend=Recorded(recording=recording)).on(card())

    for part in ("least", "enough", "peak", "most", "breakdown", "peak_at", "method"):
        assert getattr(found, part) == getattr(traced, part)
    assert found.spec_digest != traced.spec_digest


@pytest.mark.parametrize(
    ("recorded_for", "seen_on"), [(AMPERE, AMPERE), (AMPERE, TURING), (TURING, AMPERE)]
)
def test_a_trace_without_attention_is_the_same_on_every_card(
    recorded_for: Traits, seen_on: Traits
) -> None:
    """Convolutions are asked for anew anyway; nothing is noted."""
    trace = trace_with("aten.convolution")

    assert on_card(trace, recorded=recorded_for, card=seen_on) is trace


def test_flash_kernels_on_a_card_with_efficient_ones_are_said_and_widened() -> None:
    """The need is about the same: an assumption, and the interval of a formula."""
    found = on_card(trace_with(FLASH), recorded=AMPERE, card=TURING)

    (note,) = found.assumptions
    assert (note.code, note.value) == (AssumptionCode.ATTENTION_BACKEND, "memory-efficient")
    assert OTHER_CARD in found.facts
    assert AT_MOST not in found.facts


@pytest.mark.parametrize(
    ("operator", "seen_on"),
    [
        (FLASH, TURING),
        (EFFICIENT, TURING),
        (FLASH, Traits(flash_attention=False, efficient_attention=False, native_bf16=True)),
    ],
)
def test_a_card_that_would_keep_scores_has_no_estimate(operator: str, seen_on: Traits) -> None:
    """`enough` without the scores would be too little: it is unknown, with the way out."""
    with pytest.raises(UnsupportedJobError, match=r"keeps scores(.|\n)*--gpu") as caught:
        on_card(trace_with(operator, dtype="bfloat16"), recorded=AMPERE, card=seen_on)

    assert caught.value.path == "model.source"


@pytest.mark.parametrize("operator", [EFFICIENT, "aten.bmm"])
def test_a_card_with_more_kernels_rests_least_on_the_weights(operator: str) -> None:
    """What was recorded without flash kernels may need much less with them."""
    found = on_card(trace_with(operator), recorded=TURING, card=AMPERE)

    assert AT_MOST in found.facts
    assert OTHER_CARD in found.facts
    assert [note.code for note in found.assumptions] == [AssumptionCode.ATTENTION_BACKEND]


def test_the_estimate_of_another_kind_of_card_has_the_interval_of_a_formula() -> None:
    """Its method says how far to trust it."""
    recording = recorded(spec_of(8), traits=TURING, trace=trace_with("aten.bmm"))

    found = Job(spec=recording.spec, frontend=Recorded(recording=recording)).on(card())

    assert traits_of(card()) == AMPERE
    assert found.method is Method.FORMULA
    assert "model.attention" in [note.path for note in found.assumptions]


def test_no_other_job_is_made_of_a_recording() -> None:
    """Neither another batch nor a search for one: said with the way out."""
    recording = stub_recording()
    other = parse_spec({**recording.spec.document(), "input": {"batchSize": 4}})

    with pytest.raises(UnsupportedJobError, match="one job at one batch size"):
        Recorded(recording=recording).trace_job(other, traits=AMPERE)
    with pytest.raises(UnsupportedJobError, match=r"write a file of another job"):
        fit(recording.spec, [card()])


def test_least_rests_on_the_weights_where_a_cheaper_job_was_not_recorded() -> None:
    """A paged optimizer may leave the card: how little that needs, the file does not say."""
    spec = spec_of(8, training={"optimizer": {"name": "adamw", "paged": True}})
    trace = StubFrontend().trace_job(spec, traits=AMPERE)
    recording = recorded(spec, traits=AMPERE, trace=trace)

    found = Job(spec=recording.spec, frontend=Recorded(recording=recording)).on(card())

    assert found.least.reserved_bytes <= WEIGHTS


def test_a_framework_without_a_model_of_its_allocator_is_unsupported() -> None:
    """A trace says nothing of how its framework's allocator works."""
    spec = parse_spec({**spec_of(8).document(), "framework": "jax"})
    trace = StubFrontend().trace_job(spec, traits=AMPERE)
    recording = recorded(spec, traits=AMPERE, trace=trace)

    with pytest.raises(UnsupportedJobError, match="a Trace file of 'jax' is not modelled"):
        Recorded(recording=recording).trace_job(recording.spec, traits=AMPERE)
