"""What PyTorch makes of cuDNN's plans."""

from __future__ import annotations

from dataclasses import replace

import pytest

from estimator.cudnn import Answer, Direction, Plan, Question
from estimator.kernels.choosing import Choice, Switches, choice_of, falling, halves
from estimator.units import MIB

ASKED = 92600
DEFAULT = Switches(benchmark=False, deterministic=False, allow_tf32=True)
QUESTION = Question(
    direction=Direction.FORWARD,
    dtype="float32",
    input=(8, 64, 56, 56),
    weight=(64, 64, 3, 3),
    output=(8, 64, 56, 56),
    stride=(1, 1),
    padding=(1, 1),
    dilation=(1, 1),
    channels_last=False,
)
POINTWISE = replace(QUESTION, weight=(64, 64, 1, 1), padding=(0, 0))


def plan(workspace: int, *notes: int, engine: int = 1) -> Plan:
    """Return a plan with these numerical notes."""
    return Plan(engine=engine, notes=notes, workspace=workspace)


def choice(
    *plans: Plan,
    question: Question = QUESTION,
    switches: Switches = DEFAULT,
    wanted: int | None = ASKED,
    fallback: tuple[Plan, ...] = (),
) -> Choice | None:
    """Return what PyTorch makes of *plans* on an A100."""
    return choice_of(
        Answer(version=ASKED, instant=plans, fallback=fallback),
        question,
        switches,
        wanted=wanted,
        capability=(8, 0),
    )


def preferred(*plans: Plan, **changes: object) -> int:
    """Return the workspace of the plan that runs."""
    found = choice(*plans, **changes)  # type: ignore[arg-type]  # passed on as they are
    assert found is not None
    return found.preferred


def test_the_first_plan_of_the_jobs_own_library_is_certain() -> None:
    """Benchmark off, same version: the library's order, then the others as memory runs short."""
    assert choice(plan(9), plan(20), plan(3), fallback=(plan(0),)) == Choice(
        preferred=9, alternatives=(9, 20, 3, 0), least=9, most=9, largest=20
    )


def test_another_release_may_put_another_plan_first() -> None:
    """The low end is then the smallest of all plans."""
    found = choice(plan(9), plan(3), wanted=91900)

    assert found is not None
    assert (found.preferred, found.least, found.most) == (9, 3, 9)


def test_full_precision_takes_no_tensor_cores() -> None:
    """fp32 with TF32 off drops plans with the tensor-core note; fp16 keeps them."""
    strict = replace(DEFAULT, allow_tf32=False)

    assert preferred(plan(9, 0), plan(3), switches=strict) == 3
    assert preferred(plan(9, 0), plan(3)) == 9
    half = replace(QUESTION, dtype="float16")
    assert preferred(plan(9, 0), plan(3), question=half, switches=strict) == 9


def test_plans_that_narrow_their_inputs_are_never_taken() -> None:
    """PyTorch drops the down-convert note whatever the dtype."""
    assert preferred(plan(9, 1), plan(3)) == 3


def test_a_deterministic_run_takes_no_plan_that_is_not() -> None:
    """Note 4 says that sums come in any order."""
    deterministic = replace(DEFAULT, deterministic=True)

    assert preferred(plan(9, 4), plan(3), switches=deterministic) == 3


@pytest.mark.parametrize(("version", "expected"), [(91400, 3), (91500, 9)])
def test_an_erratum_is_true_for_some_versions(version: int, expected: int) -> None:
    """Forward engine 23 is left out from 9.8 up to 9.14."""
    assert preferred(plan(9, engine=23), plan(3), wanted=version) == expected


def test_an_erratum_is_true_for_one_direction() -> None:
    """Engine 23 computes the input's gradient never, the weight's always."""
    data = replace(QUESTION, direction=Direction.DATA)
    weight = replace(QUESTION, direction=Direction.WEIGHT)

    assert preferred(plan(9, engine=23), plan(3), question=data) == 3
    assert preferred(plan(9, engine=23), plan(3), question=weight) == 9


def test_a_benchmarked_pointwise_filter_is_taken_to_need_the_least() -> None:
    """The fastest plan of a 1x1 filter gathers nothing; the library's first is the high end."""
    benchmark = replace(DEFAULT, benchmark=True)
    found = choice(plan(9, 0), plan(0), question=POINTWISE, switches=benchmark)

    assert found == Choice(preferred=0, alternatives=(9, 0), least=0, most=9, largest=9)
    assert preferred(plan(9, 0), plan(0), switches=benchmark) == 9


def test_a_library_before_9_8_is_taken_to_put_that_plan_first() -> None:
    """It cannot be asked."""
    assert preferred(plan(9, 0), plan(0), question=POINTWISE, wanted=90100) == 0
    assert preferred(plan(9, 0), plan(0), question=POINTWISE, wanted=90800) == 9


def test_no_plan_left_is_no_choice() -> None:
    """The caller bounds the convolution then."""
    assert choice(plan(9, 1)) is None


def test_less_memory_helps_only_where_a_plan_is_smaller_than_all_before() -> None:
    """9 fails, so does 20; 3 may do."""
    assert falling((9, 20, 3, 5, 0), 9) == (3, 0)


def test_a_search_halves_down_to_nothing() -> None:
    """4 MiB, then 2, 1, and without."""
    assert halves(4 * MIB) == (2 * MIB, MIB, 0)
