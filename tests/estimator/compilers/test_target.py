"""What XLA is told of a card."""

from __future__ import annotations

import pytest

from estimator.catalog import all_gpus
from estimator.catalog.xla_targets import xla_target
from estimator.compilers import target_for
from estimator.errors import UnsupportedJobError


def test_cards_of_the_catalog_from_volta_on_have_a_target() -> None:
    """A step can be compiled for every card people train on today."""
    capabilities = {gpu.compute_capability for gpu in all_gpus()}

    missing = {each for each in capabilities if each >= (7, 0) and xla_target(each) is None}

    assert not missing


def test_a_target_plans_for_the_largest_card_of_its_kind() -> None:
    """So no card of that kind gets a plan made short of memory it has."""
    for gpu in all_gpus():
        target = xla_target(gpu.compute_capability)
        if target is not None and gpu.compute_capability >= (7, 0):
            told = int(target.properties["device_memory_size"])
            assert told >= gpu.usable_mib << 20, gpu.name


def test_the_memory_of_a_card_takes_the_place_of_the_largest() -> None:
    """A step that is too large for a card is compiled for it."""
    text = target_for("8.0", memory_bytes=40 << 30).text

    assert f"device_memory_size: {40 << 30}\n" in text
    assert "cuda_compute_capability { major: 8 minor: 0 feature_extension: NONE }" in text


@pytest.mark.parametrize("capability", [None, "", "5.2", "99.0"])
def test_other_cards_are_refused_by_name(capability: str | None) -> None:
    """There is no plan for a card that XLA does not know."""
    with pytest.raises(UnsupportedJobError, match="compute capability"):
        target_for(capability)
