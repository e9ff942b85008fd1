"""Families of training scripts, one a file.

Invocation -> the family it belongs to, or why that is not clear
"""

from __future__ import annotations

from admission.detect.invocation import Invocation
from admission.detect.scripts import hf_trainer, imagenet, timm, torchvision
from admission.detect.scripts.family import Call, Family, Match

__all__ = ["FAMILIES", "Call", "Family", "Match", "families_of"]

FAMILIES: tuple[Family, ...] = (
    hf_trainer.FAMILY,
    torchvision.FAMILY,
    timm.FAMILY,
    imagenet.FAMILY,
)


def families_of(invocation: Invocation) -> tuple[Family, ...]:
    """Return the families that claim *invocation* most surely: none, one, or several."""
    matches = [(family.match(invocation, family.flags(invocation)), family) for family in FAMILIES]
    best = max(match for match, _ in matches)
    if best is Match.NO:
        return ()
    return tuple(family for match, family in matches if match is best)
