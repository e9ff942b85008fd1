"""A reading is held against the figure of its own metric and view."""

from __future__ import annotations

import pytest

from tests.bench.accuracy.builders import answer_of, case_of
from tests.bench.accuracy.cases import Metric, View
from tests.bench.accuracy.scoring import Score, counts_as_used, score


@pytest.mark.parametrize(
    ("metric", "estimated", "least", "most"),
    [
        (Metric.ALLOCATED, 80, None, 90),
        (Metric.ACTIVE, 80, None, 90),
        (Metric.RESERVED, 90, 70, 110),
        (Metric.DEVICE, 100, 80, 120),
    ],
)
def test_each_metric_has_its_own_figures(
    metric: Metric, estimated: int, least: int | None, most: int
) -> None:
    """Allocated, reserved and device are never mixed; `least` has no allocated."""
    found = score(case_of(metric=metric, nbytes=95), answer_of())

    assert found == Score(measured=95, estimated=estimated, least=least, most=most, tolerance=0)


def test_a_reading_of_the_whole_card_has_the_reservation_in_it() -> None:
    """View `card` adds what the driver keeps to the estimate and to both bounds."""
    found = score(case_of(view=View.CARD), answer_of(reservation=7))

    assert (found.estimated, found.least, found.most) == (100 + 7, 80 + 7, 120 + 7)


@pytest.mark.parametrize("view", [View.PROCESS, View.CARD_MINUS_IDLE, None])
def test_other_views_have_no_reservation_in_them(view: View | None) -> None:
    """A process, or a card less its idle reading, does not hold what the driver keeps."""
    assert score(case_of(view=view), answer_of(reservation=7)).estimated == 100


@pytest.mark.parametrize(
    ("version", "counts"),
    [("1.8.1+cu111", False), ("1.10.2+cu113", False), ("1.13.0+cu116", True), (None, True)],
)
def test_a_driver_counts_the_reservation_from_cuda_11_6_on(
    version: str | None, counts: bool
) -> None:
    """CUDA 11.6 came with driver 510, the first that counts it; an unknown release is a new one."""
    assert counts_as_used(case_of(view=View.CARD, version=version)) is counts


def test_a_driver_that_is_named_beats_the_toolkit() -> None:
    """An old toolkit on a new driver is counted as the driver does."""
    case = case_of(
        view=View.CARD, version="1.8.1+cu111", spec={"runtime": {"driver": "535.104.05"}}
    )

    assert counts_as_used(case)


def test_the_signed_error_of_an_under_estimate_is_negative() -> None:
    """Estimated over measured, less one."""
    found = score(case_of(nbytes=125), answer_of())

    assert found.signed_error == pytest.approx(100 / 125 - 1)


@pytest.mark.parametrize(
    ("measured", "inside"), [(80, True), (79, False), (120, True), (121, False)]
)
def test_a_reading_on_a_bound_is_inside(measured: int, inside: bool) -> None:
    """Only what lies beyond `least` or `most` is a failure."""
    assert score(case_of(nbytes=measured), answer_of()).is_inside is inside


@pytest.mark.parametrize("measured", [79, 121])
def test_a_reading_within_its_rounding_of_a_bound_is_inside(measured: int) -> None:
    """The printed figure is rounded: half of that width is no failure."""
    assert score(case_of(nbytes=measured, tolerance=0.02), answer_of()).is_inside


def test_the_width_is_most_over_least() -> None:
    """How much the interval says; without a `least` it says nothing."""
    assert score(case_of(), answer_of()).width == 120 / 80
    assert score(case_of(metric=Metric.ALLOCATED), answer_of()).width is None


@pytest.mark.parametrize("metric", [Metric.ALLOCATED, Metric.RESERVED])
def test_what_else_a_job_holds_is_in_the_device_alone(metric: Metric) -> None:
    """`runtime.extraBytes` moves no figure of the allocator, as the contract has it."""
    plain = score(case_of(metric=metric), answer_of())
    more = score(case_of(metric=metric, spec={"runtime": {"extraBytes": 5}}), answer_of())

    assert more == plain
