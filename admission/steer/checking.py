"""A patch tried before it is sent: one that does not apply would fail the person's request.

    object received, operations, what may change -> the object as patched

Raises where a patch changes anything beyond our annotations, our terms and termination messages.
The one importer of jsonpatch, which applies it as the API server will.
"""

from __future__ import annotations

from collections.abc import Sequence

import jsonpatch

from admission.errors import PatchError
from admission.steer.affinity import without_terms
from admission.steer.notes import NOTES
from admission.steer.operations import Operation
from admission.steer.places import Place, changed, found, mapping_at
from admission.steer.terms import RECORD, recorded
from admission.steer.writing import POLICY
from admission.values import Json


def checked(
    received: Json,
    patch: Sequence[Operation],
    *,
    templates: Sequence[Place],
    containers: Sequence[Place],
) -> Json:
    """Return *received* as *patch* leaves it.

    Raises:
        PatchError: if it does not apply, or changes anything but what it may.
    """
    try:
        patched = jsonpatch.JsonPatch([dict(step) for step in patch]).apply(received)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise PatchError(f"the patch does not apply: {str(error)[:200]}") from error
    if not isinstance(patched, dict):
        raise PatchError("the patch leaves no object")
    if _others(received, templates, containers) != _others(patched, templates, containers):
        raise PatchError("the patch changes more than it may")
    return patched


def _others(obj: Json, templates: Sequence[Place], containers: Sequence[Place]) -> Json:
    """Return *obj* without anything that is ours to write, and what is empty without it."""
    for place in templates:
        pod = mapping_at(obj, (*place, "spec"))
        ours = recorded(mapping_at(obj, (*place, "metadata")))
        obj = changed(obj, (*place, "spec"), without_terms(pod, ours))
    for place in dict.fromkeys(((), *templates)):
        for key in (*NOTES, RECORD):
            obj = changed(obj, (*place, "metadata", "annotations", key), None)
        for empty in (("metadata", "annotations"), ("metadata",)):
            obj = _without_empty(obj, (*place, *empty))
        for keys in (
            ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
            ("nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"),
            ("nodeAffinity",),
            (),
        ):
            obj = _without_empty(obj, (*place, "spec", "affinity", *keys))
        obj = _without_empty(obj, (*place, "spec", "nodeSelector"))
    for place in containers:
        if isinstance(found(obj, place), dict):
            obj = changed(obj, (*place, POLICY), None)
    return obj


def _without_empty(obj: Json, place: Place) -> Json:
    value = found(obj, place)
    return changed(obj, place, None) if value in ({}, [], None) else obj
