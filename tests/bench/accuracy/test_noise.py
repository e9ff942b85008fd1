"""The noise floor is what no line through a model's other batches explains."""

from __future__ import annotations

import pytest

from tests.bench.accuracy.builders import case_of
from tests.bench.accuracy.cases import Case
from tests.bench.accuracy.noise import INTERPOLATED, ROUNDED, noise_floor, residuals


def readings(model: str, sizes: dict[int, int], *, tolerance: float = 0.0) -> list[Case]:
    """Return one case a batch."""
    return [
        case_of(f"g/{model}-b{batch}", model=model, batch=batch, nbytes=size, tolerance=tolerance)
        for batch, size in sizes.items()
    ]


def test_readings_on_a_line_have_no_noise() -> None:
    """A fixed part and so much a sample: nothing is left."""
    cases = readings("m", {batch: 1000 + 10 * batch for batch in (8, 16, 32, 64)})

    assert residuals(cases) == [pytest.approx(0), pytest.approx(0)]


def test_a_reading_off_the_line_shows_by_how_much() -> None:
    """The middle one reads 1,250 where its neighbours put 1,000."""
    cases = readings("m", {10: 500, 20: 1250, 30: 1500})

    assert residuals(cases) == [pytest.approx(abs(1000 / 1250 - 1))]


def test_models_and_cards_are_not_mixed() -> None:
    """Only readings that differ in the batch alone share a line."""
    cases = [*readings("a", {8: 100, 16: 200}), *readings("b", {32: 100})]

    assert residuals(cases) == []


def test_the_ends_of_a_line_are_not_extrapolated() -> None:
    """A line stretched beyond its readings would pass its own error off as noise."""
    assert len(residuals(readings("m", {8: 100, 16: 200, 32: 900, 64: 1000}))) == 2


def test_with_too_few_batches_the_rounding_is_all_that_is_known() -> None:
    """A group of single readings has the rounding of its figures as a lower bound."""
    found = noise_floor(readings("m", {8: 100}, tolerance=0.004))

    assert (found.method, found.num_readings, found.median) == (ROUNDED, 1, 0.004)


def test_with_enough_batches_the_lines_are_taken() -> None:
    """Twelve readings between two others are enough."""
    cases = [
        case for index in range(12) for case in readings(f"m{index}", {10: 500, 20: 1250, 30: 1500})
    ]

    found = noise_floor(cases)

    assert (found.method, found.num_readings) == (INTERPOLATED, 12)
    assert found.median == pytest.approx(abs(1000 / 1250 - 1))
