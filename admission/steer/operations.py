"""The JSONPatch between two objects, as small as it can be read.

    before, after -> RFC 6902 operations

Lists are never overwritten: what left is taken out, what came is appended, what changed is changed
within. `null` counts as nothing, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from admission.steer.places import Place, pointer

Operation = dict[str, Any]


def operations(before: object, after: object, place: Place = ()) -> tuple[Operation, ...]:
    """Return what makes *after* of *before*, in the order it is to be done."""
    return tuple(_between(before, after, place))


def _between(before: object, after: object, place: Place) -> Iterator[Operation]:
    if before is after or before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _of_mappings(before, after, place)
    elif _is_list(before) and _is_list(after):
        yield from _of_lists(before, after, place)  # type: ignore[arg-type]
    else:
        yield {"op": "replace", "path": pointer(place), "value": after}


def _of_mappings(
    before: Mapping[str, Any], after: Mapping[str, Any], place: Place
) -> Iterator[Operation]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": pointer((*place, key))}
    for key, value in after.items():
        where = (*place, key)
        if key not in before:
            yield {"op": "add", "path": pointer(where), "value": value}
        else:
            yield from _between(before[key], value, where)


def _of_lists(before: Sequence[Any], after: Sequence[Any], place: Place) -> Iterator[Operation]:
    if len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _between(old, new, (*place, index))
        return
    gone, num_kept = [], 0
    for index, item in enumerate(before):
        if num_kept < len(after) and item == after[num_kept]:
            num_kept += 1
        else:
            gone.append(index)
    for index in reversed(gone):
        yield {"op": "remove", "path": pointer((*place, index))}
    for item in after[num_kept:]:
        yield {"op": "add", "path": f"{pointer(place)}/-", "value": item}


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)
