"""A patch tried before it is sent: one that does not apply would fail the person's request.

    object received, operations, what may change -> the object as patched

Raises where a patch changes anything beyond our annotations, our terms, termination messages and,
of a Pod at its CREATE, our scheduling gate.
The one importer of jsonpatch, which applies it as the API server will.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jsonpatch

from admission.errors import PatchError
from admission.steer.affinity import without_terms
from admission.steer.gates import is_gated, ungated
from admission.steer.notes import NOTES
from admission.steer.operations import Operation
from admission.steer.places import Place, changed, found, mapping_at
from admission.steer.terms import RECORD, recorded
from admission.steer.writing import POLICY
from admission.values import Json

_OURS = frozenset({*NOTES, RECORD})
_AFFINITIES = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def checked(
    received: Json,
    patch: Sequence[Operation],
    *,
    templates: Sequence[Place],
    containers: Sequence[Place],
    gate: bool = False,
) -> Json:
    """Return *received* as *patch* leaves it. With *gate* it may put our scheduling gate on.

    Raises:
        PatchError: if it does not apply, or changes anything but what it may.
    """
    try:
        steps = jsonpatch.JsonPatch([dict(step) for step in patch])
        patched = steps.apply(_copied(received), in_place=True)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise PatchError(f"the patch does not apply: {str(error)[:200]}") from error
    if not isinstance(patched, dict):
        raise PatchError("the patch leaves no object")
    others = ungated(patched) if gate and not is_gated(received) else patched
    if _others(received, templates, containers) != _others(others, templates, containers):
        raise PatchError("the patch changes more than it may")
    return patched


def _copied(value: Any) -> Any:
    """Return a copy of JSON: a fifth of what the general `copy.deepcopy` takes."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_copied, value))
    return value


def _others(obj: Json, templates: Sequence[Place], containers: Sequence[Place]) -> Json:
    """Return *obj* without anything that is ours to write, and what is empty without it."""
    for place in templates:
        pod = mapping_at(obj, (*place, "spec"))
        ours = recorded(mapping_at(obj, (*place, "metadata")))
        obj = _put(obj, (*place, "spec"), without_terms(pod, ours))
    for place in dict.fromkeys(((), *templates)):
        obj = _put(obj, (*place, "spec"), _bare_pod(mapping_at(obj, (*place, "spec"))))
        metadata = _bare_metadata(mapping_at(obj, (*place, "metadata")))
        obj = _put(obj, (*place, "metadata"), metadata or None)
    for place in containers:
        if isinstance(found(obj, place), dict):
            obj = changed(obj, (*place, POLICY), None)
    return obj


def _put(obj: Json, place: Place, value: Json | None) -> Json:
    is_there = value is not None and value is found(obj, place)
    return obj if is_there else changed(obj, place, value)


def _bare_metadata(metadata: Json) -> Json:
    """Return *metadata* without our annotations."""
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict):
        kept = {key: value for key, value in annotations.items() if key not in _OURS}
        metadata = {**metadata, "annotations": kept}
    return _without_empty(metadata, "annotations")


def _bare_pod(pod: Json) -> Json:
    """Return the spec *pod* without what of the places that terms go into is empty."""
    affinity = pod.get("affinity")
    if isinstance(affinity, dict):
        nodes = affinity.get("nodeAffinity")
        if isinstance(nodes, dict):
            affinity = {**affinity, "nodeAffinity": _without_empty(nodes, *_AFFINITIES)}
        pod = {**pod, "affinity": _without_empty(affinity, "nodeAffinity")}
    return _without_empty(pod, "affinity", "nodeSelector", "schedulingGates")


def _without_empty(fields: Json, *keys: str) -> Json:
    """Return *fields* without those of *keys* that hold nothing."""
    empty = [key for key in keys if key in fields and fields[key] in ({}, [], None)]
    return {key: fields[key] for key in fields if key not in empty} if empty else fields
