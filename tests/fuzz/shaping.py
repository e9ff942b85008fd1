"""A document with something else in some of its places.

document, Choices -> another document; the first is not changed
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from tests.fuzz.choices import Choices
from tests.fuzz.hostile import TEXTS, VALUES

MAX_CHANGES = 6
MAX_PLACES = 4000

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

Place = tuple[Any, Any]
"""A mapping or list, and the key or index in it."""


def copied(value: Any) -> Any:
    """Return *value* with mappings and lists of its own, in a fifth of `copy.deepcopy`'s time."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def mutated(document: Any, choices: Choices, *, donors: Sequence[Any] = ()) -> Any:
    """Return *document* with up to six changes; *donors* are documents that parts come from."""
    whole = [copied(document)]
    for _ in range(1 + choices.below(MAX_CHANGES)):
        places = list(_places(whole))
        parent, key = places[choices.below(len(places))]
        _change(parent, key, choices, donors)
    return whole[0]


def as_json(document: Any) -> str:
    """Return *document* as JSON, with numbers of any size: orjson writes those of 64 bits alone."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=str)


def written(documents: Sequence[Any]) -> str:
    """Return *documents* as YAML."""
    text: str = yaml.dump_all(documents, Dumper=_Dumper, allow_unicode=True, sort_keys=False)
    return text


def _change(parent: Any, key: Any, choices: Choices, donors: Sequence[Any]) -> None:
    old = parent[key]
    match choices.below(8):
        case 0 | 1:
            parent[key] = copied(choices.pick(VALUES))
        case 2:
            parent[key] = _spliced(old, choices)
        case 3:
            if isinstance(parent, dict):
                del parent[key]
            else:
                parent[key] = None
        case 4:
            parent[key] = [copied(old), copied(old)]
        case 5:
            if isinstance(parent, dict):
                parent[choices.pick(TEXTS)] = parent.pop(key)
            elif len(parent) < 500:
                parent.append(copied(choices.pick(VALUES)))
        case 6:
            parent[key] = {"name": copied(old), "value": copied(choices.pick(VALUES))}
        case _:
            donor = [choices.pick(donors)] if donors else [old]
            places = list(_places(donor))
            other, name = places[choices.below(len(places))]
            parent[key] = copied(other[name])


def mutated_text(text: str, choices: Choices) -> Any:
    """Return *text* with others in it, or something else in its place."""
    if choices.chance(4):
        return copied(choices.pick(VALUES))
    for _ in range(1 + choices.below(3)):
        text = _spliced(text, choices)
    return text


def _spliced(old: Any, choices: Choices) -> Any:
    """Return a text with another in it, a number moved, another thing as a text."""
    if isinstance(old, bool) or old is None:
        return not old
    if isinstance(old, int):
        return old + choices.pick((-1, 1, 1000, -1000, 1 << 40))
    if not isinstance(old, str):
        return str(old)[:2000]
    at = choices.below(len(old) + 1)
    new = choices.text() if choices.chance(2) else choices.pick(TEXTS)
    return old[:at] + new + old[at:]


def _places(value: Any) -> Iterator[Place]:
    """Yield every place in *value*, outermost first, as many as are looked at."""
    level, seen = [value], 0
    while level:
        below = []
        for parent in level:
            keys = list(parent) if isinstance(parent, dict) else range(len(parent))
            for key in keys:
                yield parent, key
                seen += 1
                if seen >= MAX_PLACES:
                    return
                if isinstance(parent[key], dict | list):
                    below.append(parent[key])
        level = below
