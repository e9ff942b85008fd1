"""Which cards a job may be tried on, and in which order."""

from __future__ import annotations

import pytest

from admission.commands.fit_cards import cards_by_memory, runs_on


@pytest.mark.parametrize(
    ("cuda", "compute", "runs"),
    [
        ((13, 0), (7, 0), False),
        ((13, 0), (7, 5), True),
        ((12, 1), (6, 1), True),
        ((12, 1), (3, 7), False),
        ((12, 6), (12, 0), False),
        ((12, 8), (12, 0), True),
        ((11, 7), (9, 0), False),
        ((11, 7), (8, 9), True),
        ((10, 2), (8, 0), False),
    ],
)
def test_cards_are_those_the_release_has_kernels_for(
    cuda: tuple[int, int], compute: tuple[int, int], runs: bool
) -> None:
    """CUDA 13 dropped Volta; Blackwell needs 12.8."""
    assert runs_on(cuda, compute) is runs


def test_cards_of_one_size_come_by_age() -> None:
    """An A100 before an H100 that has some MiB less."""
    names = [card.name for card in cards_by_memory("2.8.0")]

    assert names.index("a100-sxm4-80gb") < names.index("h100-pcie-80gb")
    assert "v100-sxm2-16gb" in names
    assert "v100-sxm2-16gb" not in [card.name for card in cards_by_memory("2.11.0")]
