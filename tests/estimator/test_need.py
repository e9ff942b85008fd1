"""What two cards must share to share a need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from estimator.cudnn import Answer, Card, Plan, Question
from estimator.device import Device
from estimator.need import lower_for, need_of
from estimator.replay import replay
from estimator.spec.training import Runtime
from estimator.trace import Kernel, Role, TensorFacts, Trace, TraceBuilder
from estimator.units import MIB

A100 = Device(
    name="a100",
    total_bytes=None,
    reservation_bytes=0,
    budget_bytes=None,
    compute_capability=(8, 0),
)
L4 = replace(A100, name="l4", compute_capability=(8, 9))


class Library:
    """One plan of 256 MiB on every card; a second one without workspace on some."""

    reason = None

    def ask(
        self,
        questions: Sequence[Question],
        card: Card,
        *,
        wanted: int | None,  # noqa: ARG002
    ) -> list[Answer | None]:
        """Return the plans of *card*."""
        sizes = (256 * MIB,) if card.compute_capability == (8, 0) else (256 * MIB, 0)
        plans = tuple(Plan(engine=1, notes=(), workspace=size) for size in sizes)
        return [Answer(version=92600, instant=plans, fallback=())] * len(questions)


def trace() -> Trace:
    """Return one convolution of a job that states its version."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    builder.alloc(MIB, Role.ACTIVATION)
    shapes = ((8, 64, 56, 56), (64, 64, 3, 3), (8, 64, 56, 56))
    builder.kernel(
        Kernel(
            operator="aten.convolution",
            operands=tuple(TensorFacts(shape=shape, dtype="float32") for shape in shapes),
        )
    )
    return builder.build()


def test_programs_that_differ_in_what_they_can_do_with_are_not_the_same() -> None:
    """Equal sizes, other choices under pressure: two keys, whichever card comes first."""
    on_a100, on_l4 = (lower_for(trace(), card, Runtime(), Library()) for card in (A100, L4))

    assert on_a100.program.sizes == on_l4.program.sizes
    assert on_a100.key != on_l4.key


def test_a_job_whose_convolutions_nobody_answers_for_is_known_as_such() -> None:
    """Its interval is wider; one that asked, or has no convolutions, is not."""
    empty = TraceBuilder(framework="pytorch", framework_version="2.15.0").build()

    assert lower_for(trace(), A100, Runtime()).is_bounded
    assert not lower_for(trace(), A100, Runtime(), Library()).is_bounded
    assert not lower_for(empty, A100, Runtime()).is_bounded


def test_a_program_without_ranges_is_lowered_and_searched_once() -> None:
    """A language model has nothing uncertain: all three programs are one, and so are the needs."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.13.0")
    tensor = builder.alloc(30 * MIB, Role.ACTIVATION)
    builder.kernel(Kernel(operator="aten.mm", operands=()))
    builder.free(tensor)

    lowered = lower_for(builder.build(), A100, Runtime())
    need = need_of(lowered)

    assert lowered.frugal is lowered.program is lowered.lavish
    assert (need.least, need.most) == (need.enough, need.free)


def test_ends_that_are_equal_share_a_run() -> None:
    """An uncertain workspace whose expected size is its largest: `most` is the free run."""
    lowered = lower_for(trace(), A100, Runtime())
    alike = replace(lowered, lavish=replace(lowered.program))
    apart = replace(lowered, lavish=lowered.frugal)

    need = need_of(alike)

    assert not lowered.program.is_certain
    assert need.most is need.free
    assert need_of(apart).most == replay(lowered.frugal, lowered.allocator())


def test_a_program_with_a_range_is_lowered_at_both_ends() -> None:
    """A bounded convolution: nothing at the low end."""
    lowered = lower_for(trace(), A100, Runtime())

    assert not lowered.program.is_certain
    assert sum(lowered.frugal.sizes) < sum(lowered.program.sizes)


def test_a_program_nobody_asks_the_most_of_is_not_lowered_for_it() -> None:
    """The cheapest job tells the least alone, and it is the same least."""
    lowered = lower_for(trace(), A100, Runtime(), has_most=False)

    assert lowered.lavish is lowered.program
    assert need_of(lowered).least == need_of(lower_for(trace(), A100, Runtime())).least
