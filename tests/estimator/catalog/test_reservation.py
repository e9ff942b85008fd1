"""Which drivers and meters count the driver's own reservation."""

from __future__ import annotations

import pytest

from estimator.catalog.reservation import counts_reservation


@pytest.mark.parametrize(
    ("driver", "cuda", "expected"),
    [
        ("535.54.03", None, True),
        ("510.39", (10, 2), True),
        ("470.82.01", (12, 1), False),
        (None, (11, 5), False),
        (None, (11, 6), True),
        ("", (12, 4), True),
        (None, None, None),
        ("unknown", None, None),
    ],
)
def test_totals_hold_the_reservation_from_driver_510_on(
    driver: str | None, cuda: tuple[int, int] | None, expected: bool | None
) -> None:
    """A named driver decides; else software of CUDA 11.6 on is taken to run on 510 or newer."""
    assert counts_reservation(driver, cuda=cuda) is expected
