"""A run as few samples: what they keep exactly."""

from __future__ import annotations

from hypothesis import given

from estimator.allocators.exact import ExactAllocator
from estimator.allocators.pytorch import pytorch_allocator
from estimator.allocators.settings import CachingSettings
from estimator.program import Program
from estimator.replay import replay
from estimator.report.timeline import MAX_SAMPLES, MAX_SPANS, observed, spans_of, thinned
from estimator.trace import Phase, Role, TraceBuilder
from estimator.units import MIB
from tests.estimator.report.programs import CAPS, OPTIONS, programs, recorded


def long_program(num_tensors: int = 30_000) -> Program:
    """Return a run whose memory rises and falls, with spikes, and one highest spike."""

    def record(builder: TraceBuilder) -> None:
        builder.at(step=1, phase=Phase.FORWARD, operator="aten.mm", module="layer")
        kept = []
        for index in range(num_tensors):
            kept.append(builder.alloc(1000, Role.ACTIVATION))
            size = 10**9 if index == 17_171 else 500_000 * (index % 7)
            builder.free(builder.alloc(size, Role.TEMPORARY))
        builder.at(step=1, phase=Phase.BACKWARD, operator="aten.mm", module="layer")
        for tensor in reversed(kept):
            builder.free(tensor)

    return recorded(record)


@given(program=programs(), options=OPTIONS, capacity=CAPS)
def test_watching_a_run_changes_nothing_and_keeps_its_peaks(
    program: Program, options: CachingSettings, capacity: int | None
) -> None:
    """The run is the replay's; its peaks are among the samples, the peak at its own event."""
    expected = replay(program, pytorch_allocator(options, capacity=capacity))

    found = observed(program, pytorch_allocator(options, capacity=capacity))

    assert found.run == expected
    timeline = found.timeline
    allocated = timeline.allocated()
    assert max(allocated, default=0) == expected.allocated
    assert max(timeline.reserved, default=0) == expected.reserved
    assert list(timeline.events) == sorted(set(timeline.events))
    if expected.allocated:
        at = timeline.events.index(expected.allocated_event)
        assert allocated[at] == expected.allocated
        assert all(held >= used for held, used in zip(timeline.reserved, allocated, strict=True))


def test_a_long_run_has_few_samples_and_its_highest_spike() -> None:
    """One event of 120,000 is the peak, and is there with its roles."""
    program = long_program()

    found = observed(program, ExactAllocator())

    timeline = found.timeline
    assert timeline.num_events == 4 * 30_000
    assert 600 < len(timeline.events) <= MAX_SAMPLES
    at = timeline.events.index(found.run.allocated_event)
    assert timeline.live["temporary"][at] == 10**9
    assert timeline.live["activations"][at] == 17_172 * 1000


def test_every_stretch_keeps_its_least_and_most() -> None:
    """Between two spikes the line comes down again: no stretch is drawn as one plateau."""
    timeline = observed(long_program(), ExactAllocator()).timeline

    temporary = timeline.live["temporary"]
    forward = [
        used
        for used, event in zip(temporary, timeline.events, strict=True)
        if event < timeline.spans[1].first
    ]
    assert forward.count(0) > len(forward) // 4
    assert forward.count(3_000_000) > len(forward) // 4


def test_thinning_keeps_the_peak_and_the_columns_together() -> None:
    """Fewer samples of samples: the extremes stay, each with its own roles."""
    whole = observed(long_program(), ExactAllocator())

    thin = thinned(whole.timeline, most=300)

    assert len(thin.events) <= 300
    assert whole.run.allocated_event in thin.events
    assert max(thin.allocated()) == whole.run.allocated
    assert set(zip(thin.events, thin.allocated(), thin.reserved, strict=True)) <= set(
        zip(
            whole.timeline.events,
            whole.timeline.allocated(),
            whole.timeline.reserved,
            strict=True,
        )
    )
    assert thinned(thin, most=300) is thin


def test_phases_are_spans_and_steps_where_there_are_too_many() -> None:
    """A hundred micro-batches alternate between two phases: the steps are told instead."""

    def record(num_batches: int) -> Program:
        def run(builder: TraceBuilder) -> None:
            builder.alloc(MIB, Role.PARAMETER)
            for _ in range(num_batches):
                for phase in (Phase.FORWARD, Phase.BACKWARD):
                    builder.at(step=1, phase=phase, operator="", module="")
                    builder.free(builder.alloc(MIB, Role.ACTIVATION))

        return recorded(run)

    few, many = spans_of(record(2)), spans_of(record(MAX_SPANS))

    assert [(each.step, each.phase, each.first) for each in few] == [
        (0, "load", 0),
        (1, "forward", 1),
        (1, "backward", 3),
        (1, "forward", 5),
        (1, "backward", 7),
    ]
    assert [(each.step, each.phase, each.first) for each in many] == [(0, "load", 0), (1, "", 1)]


def test_an_empty_program_has_no_samples() -> None:
    """Nothing to draw is no error."""
    timeline = observed(recorded(lambda _: None), ExactAllocator()).timeline

    assert (timeline.num_events, timeline.events, timeline.live) == (0, (), {})
