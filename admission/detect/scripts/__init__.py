"""Families of training scripts, one a file.

Invocation -> the family it belongs to, or why that is not clear
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from admission.detect.invocation import Invocation
from admission.detect.recipes import load_recipe
from admission.detect.scripts.family import Call, Family, Match
from admission.detect.scripts.index import entries_for
from admission.detect.scripts.table import ENTRIES

__all__ = ["Call", "Family", "Match", "families_in", "families_of", "load_families"]


def families_of(invocation: Invocation) -> tuple[Family, ...]:
    """Return the families that claim *invocation* most surely: none, one, or several."""
    matches = [
        (family.match(invocation, family.flags(invocation)), family)
        for entry in entries_for(invocation)
        for family in families_in(entry.module)
        if family.may_claim(invocation)
    ]
    best = max((match for match, _ in matches), default=Match.NO)
    if best is Match.NO:
        return ()
    return tuple(family for match, family in matches if match is best)


@cache
def families_in(module: str) -> tuple[Family, ...]:
    """Return the families of *module* of this package: its `FAMILIES`, or its one `FAMILY`."""
    loaded = import_module(f"{__name__}.{module}")
    families: tuple[Family, ...] = getattr(loaded, "FAMILIES", None) or (loaded.FAMILY,)
    return families


def load_families() -> None:
    """Import every family and read every recipe: what would else wait for the first call."""
    for entry in ENTRIES:
        families_in(entry.module)
        for name in entry.recipes:
            load_recipe(name)
