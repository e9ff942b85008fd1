"""A share of a card that a unit declares, and what it makes of a class of nodes.

Share, the card -> Declared
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a container may use of each of its cards, in the words of whoever shares them.

    An amount, a part of the card, or a MIG profile; none of them: the whole device of a claim.
    """

    text: str
    """As it was written: `nvidia.com/gpumem: 3000`."""
    key: str
    """What would be raised; empty if nothing can be."""
    path: str
    nbytes: int | None = None
    part: Fraction | None = None
    """Of the card: `gpu-fraction: 0.5`, `nvidia.com/gpumem-percentage: 50`."""
    profile: str = ""
    unit_bytes: int = 1
    """What one of the number written stands for."""
    is_floor: bool = False
    """The device has at least as much, and may be had whole: too little of it denies nothing."""
    wanted: str = ""
    """Reference of the document that would tell more."""
    problem: str = ""
    """Why it cannot be read."""

    def unread(self, problem: str) -> Share:
        """Return the share as one that cannot be read."""
        return replace(self, problem=problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """That the budget of a class is what a unit declares, not what its cards give."""

    share: Share
    whole_bytes: int
    """What a pod could use without the declaration."""
    base_bytes: int
    """What parts are parts of."""
