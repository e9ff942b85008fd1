"""Strategic merge patches of pod specs, as the API server and the operators apply them.

base, patch -> the patched

Lists of named things are merged by their names, every other list is replaced; null takes away.
Source: the `patchMergeKey` tags of kubernetes `staging/src/k8s.io/api/core/v1/types.go` v1.36.3.
Not modelled: `$patch` and `$setElementOrder` directives, which are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from admission.values import Json

MAX_DEPTH = 32
_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "replicatedJobs": "name",
    "resourceClaims": "name",
    "imagePullSecrets": "name",
}


def patched(base: Json, patch: Json, *, depth: int = 0) -> dict[str, Any]:
    """Return *base* with *patch* merged over it; neither is changed."""
    result = dict(base)
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            result.pop(key, None)
            continue
        old = result.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping) and depth < MAX_DEPTH:
            result[key] = patched(old, value, depth=depth + 1)
        elif isinstance(value, list) and isinstance(old, list | tuple) and key in _KEYS:
            result[key] = _merged(list(old), value, _KEYS[key], depth=depth + 1)
        else:
            result[key] = value
    return result


def _merged(old: list[Any], new: list[Any], key: str, *, depth: int) -> list[Any]:
    """Return *old* with each of *new* merged into the item of the same name, or put behind."""
    result = list(old)
    places = {
        item.get(key): index
        for index, item in enumerate(result)
        if isinstance(item, Mapping) and isinstance(item.get(key), str)
    }
    for item in new:
        name = item.get(key) if isinstance(item, Mapping) else None
        if isinstance(item, Mapping) and isinstance(name, str) and name in places:
            result[places[name]] = patched(result[places[name]], item, depth=depth)
        else:
            if isinstance(name, str):
                places[name] = len(result)
            result.append(item)
    return result
