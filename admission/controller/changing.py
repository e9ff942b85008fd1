"""What is changed of a workload on its way to another card.

object, Moving -> the object as it may be steered; tests and operations of a JSON Patch
"""

from __future__ import annotations

from typing import Any

from admission.codes import Steer
from admission.controller.moving import MOVING, Moving
from admission.decision import budget_of
from admission.inventory import STEER_LABEL
from admission.steer.places import Place, changed, found, pointer
from admission.steer.plan import HELD
from admission.values import Json, Judgement

_LABEL: Place = ("metadata", "labels", STEER_LABEL)


def as_new(obj: Json, place: Place) -> Json:
    """Return *obj*, which is suspended, as if it had never started and were steered hard.

    Only so does what reads it see that its template may change. A run of a CronJob is its own.
    """
    bare: Json = {key: value for key, value in obj.items() if key != "status"}
    bare = changed(bare, ("metadata", "ownerReferences"), None)
    return changed(changed(bare, place, True), _LABEL, Steer.REQUIRED.value)


def leads_elsewhere(judgement: Judgement) -> bool:
    """Return whether pods that are steered so reach no card that one of them died on."""
    return judgement.verdict in HELD and all(
        (budget_of(found.node_class) or 0) >= judged.floor.nbytes
        for judged in judgement.units
        if judged.floor is not None
        for found in judged.classes
    )


def guards(obj: Json, place: Place) -> tuple[Json, ...]:
    """Return the tests that the step is still the one that was decided on."""
    text: Any = found(obj, ("metadata", "annotations", MOVING))
    return (
        {"op": "test", "path": pointer(("metadata", "annotations", MOVING)), "value": text},
        {"op": "test", "path": pointer(place), "value": True},
    )


def noted(moving: Moving) -> Json:
    """Return the operation that writes down how far the move is."""
    path = pointer(("metadata", "annotations", MOVING))
    return {"op": "replace", "path": path, "value": moving.text()}
