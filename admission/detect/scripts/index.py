"""Which modules of families are worth asking about a call.

    Invocation -> entries of the table, in its order

A family that is not among them does not claim the call; one that is may still say no.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from admission.detect.invocation import Invocation
from admission.detect.recipes.tables import load_table
from admission.detect.scripts.table import ENTRIES, Entry

NAMES = "names"
"""The table of what every recipe is recognised by, so that none is read to be passed over.

`python -m tools.recipe_names` writes it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Index:
    """Name -> positions in the table."""

    scripts: Mapping[str, frozenset[int]]
    modules: Mapping[str, frozenset[int]]
    beginnings: Mapping[str, frozenset[int]]
    """Of names of modules."""
    flags: Mapping[str, frozenset[int]]


def entries_for(invocation: Invocation) -> tuple[Entry, ...]:
    """Return the entries whose families may claim *invocation*."""
    index = _index()
    name = invocation.name
    found = {at for at, entry in enumerate(ENTRIES) if entry.may_claim(invocation)}
    if invocation.is_module:
        found |= index.modules.get(name, frozenset())
        for beginning, places in index.beginnings.items():
            if name.startswith(beginning):
                found |= places
    else:
        found |= index.scripts.get(name, frozenset())
        for flag in index.flags.keys() & invocation.spellings:
            found |= index.flags[flag]
    return tuple(ENTRIES[at] for at in sorted(found))


@cache
def _index() -> _Index:
    scripts: list[tuple[str, int]] = []
    modules: list[tuple[str, int]] = []
    flags: list[tuple[str, int]] = []
    recipes = load_table(NAMES)
    for at, entry in enumerate(ENTRIES):
        scripts += ((name, at) for name in entry.scripts)
        for recipe in (recipes[name] for name in entry.recipes):
            scripts += ((name, at) for name in recipe["scripts"])
            modules += ((name, at) for name in recipe["modules"])
            flags += ((name, at) for name in recipe["own"])
    return _Index(
        scripts=_grouped(scripts),
        modules=_grouped(pair for pair in modules if not pair[0].endswith(".")),
        beginnings=_grouped(pair for pair in modules if pair[0].endswith(".")),
        flags=_grouped(flags),
    )


def _grouped(pairs: Iterable[tuple[str, int]]) -> Mapping[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for name, at in pairs:
        found.setdefault(name, set()).add(at)
    return {name: frozenset(places) for name, places in found.items()}
