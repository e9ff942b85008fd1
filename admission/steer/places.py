"""Field paths within an object: found, changed in a copy, written as JSON pointers.

    object, `spec.tasks[0].template` -> value; with a new value -> changed copy

What an object shares with its changed copy is not copied: neither is ever written to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from admission.values import Json

Key = str | int
Place = tuple[Key, ...]

_PART = re.compile(r"(?P<name>[^.\[\]]+)(?P<indexes>(\[\d{1,6}\])*)")
_MAPPING = (dict, Mapping)
_SEQUENCE = (list, Sequence)
"""What JSON is made of first: asking an abstract class takes ten times as long."""


def place_of(path: str) -> Place | None:
    """Return the keys that a field path is made of; None if it leads into another object."""
    if not path:
        return ()
    keys: list[Key] = []
    for part in path.split("."):
        match = _PART.fullmatch(part)
        if match is None:
            return None
        keys.append(match["name"])
        keys += [int(index) for index in re.findall(r"\d+", match["indexes"])]
    return tuple(keys)


def found(obj: object, place: Place) -> object | None:
    """Return what is at *place*, None if that is nothing."""
    for key in place:
        if isinstance(key, str) and isinstance(obj, _MAPPING):
            obj = obj.get(key)
        elif isinstance(key, int) and isinstance(obj, _SEQUENCE) and key < len(obj):
            obj = obj[key]
        else:
            return None
    return obj


def mapping_at(obj: object, place: Place) -> Json:
    """Return the mapping at *place*; the empty one if there is none."""
    value = found(obj, place)
    return value if isinstance(value, _MAPPING) else {}


def changed(obj: Json, place: Place, value: object | None) -> Json:
    """Return *obj* with *value* at *place*, mappings on the way made; None takes it away.

    What is to be taken away and is not there leaves *obj* as it is.
    """
    if value is None and place[-1] not in mapping_at(obj, place[:-1]):
        return obj
    result = _changed(obj, place, value)
    assert isinstance(result, _MAPPING), "a place within a mapping"
    return result


def pointer(place: Place) -> str:
    """Return the JSON pointer of *place* (RFC 6901)."""
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in place)


def _changed(obj: object, place: Place, value: object | None) -> object:
    if not place:
        return value
    key, rest = place[0], place[1:]
    if isinstance(key, int):
        assert isinstance(obj, _SEQUENCE), "lists are found before they are changed"
        inner = _changed(obj[key], rest, value)
        return [inner if index == key else item for index, item in enumerate(obj)]
    fields = obj if isinstance(obj, _MAPPING) else {}
    new = _changed(fields.get(key), rest, value)
    if new is None:
        return {name: item for name, item in fields.items() if name != key}
    return {**fields, key: new}
