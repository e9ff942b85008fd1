"""What an operator says of the cards of nodes, where labels say nothing or something wrong.

labels -> Device
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from admission.values import Json
from estimator.device import Device


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldCard:
    """The card of every node that has these labels."""

    labels: Mapping[str, str]
    device: Device


class ToldCards:
    """All of it: the first whose labels a node has counts."""

    def __init__(self, cards: tuple[ToldCard, ...] = ()) -> None:
        self._cards = cards

    def card_of(self, labels: Json) -> Device | None:
        """Return the card that somebody said the node with *labels* has; None if nobody did."""
        for told in self._cards:
            if all(labels.get(key) == value for key, value in told.labels.items()):
                return told.device
        return None


NOTHING_TOLD = ToldCards()
