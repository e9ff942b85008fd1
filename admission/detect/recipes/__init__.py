"""What is known of programs that people train with: their flags and what they take by default.

    name -> Recipe, from `data/NAME.yaml`

One file a program, with its source. A recipe says nothing of what flags mean: a family does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from admission.detect.configs import defaults_of
from admission.detect.flags import Flag, Options, Takes
from admission.detect.versions import version_of
from estimator.documents import read_own

__all__ = ["Recipe", "Release", "load_recipe"]

_TAKES = {
    "one": Takes.ONE,
    "switches": Takes.NOTHING,
    "several": Takes.SEVERAL,
    "maybe": Takes.MAYBE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What older releases of a program take by default."""

    before: tuple[int, ...]
    defaults: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One program."""

    name: str
    """As people call it: `axolotl`. `sources` name defaults by it."""
    source: str
    """Repository@commit and paths the facts below were read in."""
    framework: str
    package: str
    """Whose version tells the release; empty if there is none."""
    scripts: frozenset[str]
    """File names of its scripts; others have files of these names too."""
    unique: frozenset[str]
    """File names of its scripts that nobody else has."""
    modules: tuple[str, ...]
    """Modules of `python -m`, and words of its own command; one that ends in `.` is a beginning."""
    places: tuple[str, ...]
    """Parts of a path or URL that only its scripts have."""
    own: frozenset[str]
    """Flags that hardly any other program has."""
    foreign: frozenset[str]
    """Flags that only another program of the same name has."""
    options: Options
    defaults: Mapping[str, Any]
    releases: tuple[Release, ...]

    def defaults_for(self, version: str | None) -> Mapping[str, Flag]:
        """Return what it takes where nothing is given, in release *version*; None: the newest."""
        values = dict(self.defaults)
        told_by = f"default of {self.name}"
        numbers = version_of(version) if version else None
        for release in self.releases:
            if numbers is not None and numbers < release.before:
                values |= release.defaults
                told_by = f"default of {self.name} {version}"
        return defaults_of(values, told_by=told_by)


@cache
def load_recipe(name: str) -> Recipe:
    """Return the recipe called *name*."""
    text = Path(__file__).with_name("data").joinpath(f"{name}.yaml").read_text("utf-8")
    data = read_own(text)
    flags = data.get("flags", {})
    names = {flag: _TAKES[kind] for kind in _TAKES for flag in flags.get(kind, "").split()}
    match = data.get("match", {})
    return Recipe(
        name=data["name"],
        source=data["source"],
        framework=data["framework"],
        package=data.get("package", ""),
        scripts=frozenset(match.get("scripts", ())),
        unique=frozenset(match.get("unique", ())),
        modules=tuple(match.get("modules", ())),
        places=tuple(match.get("places", ())),
        own=frozenset(match.get("own", ())),
        foreign=frozenset(match.get("foreign", ())),
        options=Options(
            names=names,
            short=flags.get("short", {}),
            takes_pairs=flags.get("pairs", False),
        ),
        defaults=data.get("defaults", {}),
        releases=tuple(
            Release(before=version_of(str(item["before"])) or (), defaults=item["defaults"])
            for item in data.get("releases", ())
        ),
    )
