"""The card a question is about, as far as cuDNN can tell cards apart.

    Device -> Card -> device-property JSON

Cards that get the same answers are one `Card`: an A30 is an A100 here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import orjson

from estimator.catalog.cudnn_devices import cudnn_device
from estimator.device import ComputeCapability, Device

MAX_MULTIPROCESSORS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A class of cards with the same answers."""

    compute_capability: ComputeCapability
    multiprocessors: int


def card_of(device: Device) -> Card | None:
    """Return what cuDNN is asked about for *device*, None if its architecture is not known.

    The number of multiprocessors is the device's own where answers follow it.
    """
    known = cudnn_device(device.compute_capability)
    if known is None:
        return None
    own = device.multiprocessors if known.count_matters else None
    return Card(
        compute_capability=device.compute_capability,
        multiprocessors=own or known.multiprocessors,
    )


@lru_cache(maxsize=64)
def properties_of(card: Card) -> bytes | None:
    """Return the device-property JSON of *card*, None if its architecture is not known."""
    known = cudnn_device(card.compute_capability)
    if known is None:
        return None
    own = {"multiProcessorCount": card.multiprocessors}
    return orjson.dumps({**known.properties, **own}, option=orjson.OPT_SORT_KEYS)
