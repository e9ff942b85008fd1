"""What one look at the cards of a node finds.

a backend -> Reading
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from admission.agent.problems import AgentProblem, Found


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card, or an instance of one that is cut (MIG). Sizes in bytes."""

    gpu: str
    """What tells it from every other for good: its UUID, or the PCI address of an AMD card."""
    index: str
    """Its number on the node, which may change at a restart of the node."""
    instance: str = ""
    """The number of the GPU instance; empty for a whole card."""
    product: str
    total: int
    used: int
    """By everybody. Without the reservation where the driver tells that."""
    reserved: int | None = None
    """The driver's own; None where it does not tell, and counts it as used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What one process holds of one card."""

    pid: int
    """In the namespace of the host."""
    gpu: str
    nbytes: int | None
    """None: the driver does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One look."""

    cards: tuple[Card, ...] = ()
    uses: tuple[Use, ...] = ()
    problems: Found = field(default_factory=dict)


class Backend(Protocol):
    """Who asks the cards of one vendor."""

    def read(self) -> Reading:
        """Return what is there now; what goes wrong is among its problems, never raised."""
        ...

    def close(self) -> None:
        """Let go of the cards."""
        ...


def joined(readings: Iterable[Reading]) -> Reading:
    """Return *readings* as one. A node with another vendor's cards needs no NVML."""
    found = tuple(readings)
    cards = tuple(card for reading in found for card in reading.cards)
    problems = {what: why for reading in found for what, why in reading.problems.items()}
    if cards:
        problems.pop(AgentProblem.NVML_MISSING, None)
    return Reading(
        cards=cards,
        uses=tuple(use for reading in found for use in reading.uses),
        problems=problems,
    )
