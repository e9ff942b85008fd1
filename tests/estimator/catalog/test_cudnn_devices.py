"""What cuDNN is told of cards: complete and sourced."""

from __future__ import annotations

import pytest

from estimator.catalog import Origin, all_gpus
from estimator.catalog.cudnn_devices import cudnn_device

CAPABILITIES = ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_each_architecture_has_all_properties(capability: tuple[int, int]) -> None:
    """The JSON has every key, the capability as cuDNN writes it, and a source."""
    device = cudnn_device(capability)
    assert device is not None

    assert len(device.properties) == 25
    assert device.properties["deviceVer"] == 100 * capability[0] + 10 * capability[1]
    assert device.properties["multiProcessorCount"] == device.multiprocessors
    assert device.sources


def test_most_figures_are_published() -> None:
    """Only Ada's are recalled: there the capability alone decides."""
    devices = {capability: cudnn_device(capability) for capability in CAPABILITIES}

    unpublished = [
        capability
        for capability, device in devices.items()
        if device and all(source.origin is not Origin.PUBLISHED for source in device.sources)
    ]

    assert unpublished == [(8, 9)]


def test_every_card_from_volta_on_is_known() -> None:
    """No card of the catalog that cuDNN 9 still knows is left out."""
    capabilities = {gpu.compute_capability for gpu in all_gpus()}

    assert {each for each in capabilities if each >= (7, 0)} <= set(CAPABILITIES)
