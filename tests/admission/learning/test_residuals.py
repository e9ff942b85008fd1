"""What measured peaks say of estimates, and who cannot make them say anything else."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.learning import residuals_text
from admission.learning.residuals import (
    MOST_GROUPS,
    MOST_OF_NAMESPACE,
    MOST_SAMPLES,
    SHIFTS,
    Correction,
    Group,
    Residuals,
    Sample,
    correction_of,
    group_of,
    with_sample,
)

GROUP = Group(framework="pytorch", method="trace", product="Tesla-T4", version="2.6")


def sample(namespace: str, spec: int, ratio: float, *, day: int = 100) -> Sample:
    """Return one job of *namespace*."""
    return Sample(namespace=namespace, spec=f"{namespace}-{spec}", ratio=ratio, day=day)


def honest(ratio: float, *, namespaces: int = 4, jobs: int = 6, seed: int = 1) -> list[Sample]:
    """Return jobs that took about *ratio* of their estimates."""
    draw = random.Random(seed)
    return [
        sample(f"ns{number}", job, ratio * math.exp(draw.gauss(0, 0.02)))
        for number in range(namespaces)
        for job in range(jobs)
    ]


def found(samples: list[Sample]) -> Correction:
    """Return what *samples* say."""
    correction = correction_of(samples)
    assert correction is not None
    return correction


def test_peaks_move_to_what_many_independent_jobs_took() -> None:
    """A tenth more in four namespaces is a tenth more."""
    correction = found(honest(1.1))

    assert correction.shift == pytest.approx(1.1, rel=0.02)
    assert correction.upper == pytest.approx(1.1 * math.exp(2 * 0.02), rel=0.03)


@pytest.mark.parametrize(
    ("namespaces", "jobs", "widens"), [(1, 60, False), (2, 4, True), (2, 2, False)]
)
def test_few_or_one_mans_jobs_move_nothing(namespaces: int, jobs: int, widens: bool) -> None:
    """Less is needed to be more careful than to take the estimator's word away."""
    correction = found(honest(1.2, namespaces=namespaces, jobs=jobs))

    assert correction.shift == 1.0
    assert correction.may_widen is widens


def test_the_same_job_again_is_no_further_evidence() -> None:
    """A hundred runs of one spec are one sample."""
    residuals: Residuals = {}
    for day in range(100):
        residuals = with_sample(residuals, GROUP, sample("a", 1, 1.0 + day / 1000, day=day))

    (kept,) = residuals[GROUP]
    assert kept.ratio == pytest.approx(1.099)


@pytest.mark.parametrize("lie", [0.2, 5.0])
def test_one_liar_cannot_move_it(lie: float) -> None:
    """However many jobs it runs: it is one namespace among four."""
    before = found(honest(1.1))
    jobs = [sample("liar", job, lie) for job in range(MOST_OF_NAMESPACE)]
    after = found([*honest(1.1), *jobs])

    assert after.shift == pytest.approx(before.shift, rel=0.03)
    assert after.upper == pytest.approx(before.upper, rel=0.05)


def test_a_liar_with_two_honest_beside_it_stays_within_what_they_say() -> None:
    """The fewest namespaces that may shift anything."""
    truthful = honest(1.1, namespaces=2, jobs=8)
    jobs = [sample("liar", job, 5.0) for job in range(MOST_OF_NAMESPACE)]

    assert found([*truthful, *jobs]).median == pytest.approx(1.1, rel=0.03)


@pytest.mark.parametrize("ratio", [0.3, 3.0])
def test_a_shift_is_bounded(ratio: float) -> None:
    """An estimator that is so wrong needs mending, not a factor."""
    assert found(honest(ratio)).shift in SHIFTS


def test_what_could_be_nothing_shifts_nothing() -> None:
    """Jobs that spread by a fifth say little of a twentieth."""
    draw = random.Random(3)
    jobs = [
        sample(f"ns{number}", job, 1.02 * math.exp(draw.gauss(0, 0.2)))
        for number in range(4)
        for job in range(6)
    ]

    assert found(jobs).shift == 1.0


def test_what_is_kept_is_bounded() -> None:
    """By group, by namespace, by groups; what is out of all proportion is not kept."""
    residuals: Residuals = {}
    for number in range(50):
        for job in range(30):
            residuals = with_sample(residuals, GROUP, sample(f"ns{number}", job, 1.0))
    assert len(residuals[GROUP]) == MOST_SAMPLES
    of = [each.namespace for each in residuals[GROUP]]
    assert max(map(of.count, of)) <= MOST_OF_NAMESPACE
    for number in range(2 * MOST_GROUPS):
        group = Group(framework="pytorch", method="trace", product=f"card-{number}")
        residuals = with_sample(residuals, group, sample("a", 1, 1.0))
    assert len(residuals) == MOST_GROUPS
    assert with_sample(residuals, GROUP, sample("a", 1, 50.0)) is residuals


def test_what_is_written_is_read_again() -> None:
    """Also where the job says no version."""
    residuals: Residuals = {}
    other = Group(framework="jax", method="xla", product="NVIDIA-A10", version="")
    for group in (GROUP, other):
        for each in honest(1.1):
            residuals = with_sample(residuals, group, each)
    text = residuals_text.written(residuals)

    again = residuals_text.read(text)
    assert residuals_text.written(again) == text
    assert again.keys() == residuals.keys()
    assert group_of(GROUP.key) == GROUP


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=80),
        lambda inner: (
            st.lists(inner, max_size=5)
            | st.dictionaries(st.sampled_from(["version", "groups", GROUP.key]), inner, max_size=3)
        ),
        max_leaves=20,
    )
)
def test_anything_else_in_the_configmap_is_nothing(document: object) -> None:
    """Whoever may write there may write anything."""
    import orjson

    try:
        text = orjson.dumps(document).decode()
    except (TypeError, ValueError):
        return
    for samples in residuals_text.read(text).values():
        correction_of(samples)


def test_too_long_or_broken_text_is_nothing() -> None:
    """As is none."""
    assert residuals_text.read(None) == {}
    assert residuals_text.read("{") == {}
    assert residuals_text.read(" " * (residuals_text.MAX_TEXT + 1)) == {}
