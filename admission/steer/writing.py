"""The object as it should be: steered, annotated, its deaths readable.

    object, TemplatePlans, verdict -> object

Changes nothing else; `checking` makes sure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from admission.codes import Verdict
from admission.steer.affinity import has_terms, with_terms, without_terms
from admission.steer.gates import gated
from admission.steer.notes import NOTES, notes_of
from admission.steer.permission import Permission
from admission.steer.places import Place, changed, found, mapping_at, place_of
from admission.steer.plan import TemplatePlan
from admission.steer.terms import RECORD, recorded
from admission.values import Json, UnitJudgement

POLICY = "terminationMessagePolicy"
FALLBACK = "FallbackToLogsOnError"
_DEFAULT = "File"
"""What the API server fills in before it asks us: a person's own word cannot be told from it."""


def written(
    obj: Json,
    plans: Sequence[TemplatePlan],
    units: Sequence[UnitJudgement],
    *,
    verdict: Verdict,
    permission: Permission,
    termination_messages: bool,
    gate: bool = False,
) -> Json:
    """Return *obj* with the plans carried out, as far as *permission* goes.

    With *gate* it is a Pod at its CREATE that is to wait for its estimate.
    """
    for plan in plans:
        obj = _steered(obj, plan)
    if permission.annotations:
        for plan in plans:
            obj = _annotated(obj, plan.place, notes_of(plan.units))
        obj = _annotated(obj, (), notes_of(units, verdict=verdict))
    if permission.containers and termination_messages:
        for container in containers_of(units):
            fields = found(obj, container)  # null is a container to the reader of another's program
            if isinstance(fields, Mapping) and fields.get(POLICY) in (None, _DEFAULT):
                obj = changed(obj, (*container, POLICY), FALLBACK)
    return gated(obj) if gate else obj


def unsteered(obj: Json) -> Json:
    """Return *obj* without any terms that we added to its pod templates at an earlier time."""
    return _unsteered(obj, obj, ())


def containers_of(units: Iterable[UnitJudgement]) -> tuple[Place, ...]:
    """Return where the containers of training units stand, and those that start their programs."""
    training = [judged.unit for judged in units if judged.reading.skip is None]
    paths = (path for unit in training for path in (unit.container_path, unit.program.path))
    places = (place_of(path) for path in dict.fromkeys(paths))
    return tuple(place for place in places if place and len(place) > 1 and _is_container(place))


def _is_container(place: Place) -> bool:
    return place[-2] in ("containers", "initContainers") and "spec" in place


def _steered(obj: Json, plan: TemplatePlan) -> Json:
    received = mapping_at(obj, plan.pod_place)
    ours = recorded(mapping_at(obj, (*plan.place, "metadata")))
    if plan.terms == ours and has_terms(received, ours):
        return obj
    pod = with_terms(without_terms(received, ours), plan.terms)
    if pod is not received:
        obj = changed(obj, plan.pod_place, pod)
    notes = {RECORD: plan.terms.text()} if plan.terms else {}
    return _annotated(obj, plan.place, notes, keys=(RECORD,))


def _annotated(
    obj: Json, place: Place, notes: Mapping[str, str], *, keys: Sequence[str] = NOTES
) -> Json:
    """Return *obj* with *notes* as all annotations there of the names *keys*."""
    for key in keys:
        where = (*place, "metadata", "annotations", key)
        if found(obj, where) != notes.get(key):
            obj = changed(obj, where, notes.get(key))
    return obj


def _unsteered(obj: Json, part: object, place: Place) -> Json:
    """Return *obj* with every pod template at or below *part* unsteered."""
    if isinstance(part, Mapping):
        metadata, pod = part.get("metadata"), part.get("spec")
        if isinstance(metadata, Mapping) and isinstance(pod, Mapping):
            ours = recorded(metadata)
            if ours:
                return changed(obj, (*place, "spec"), without_terms(pod, ours))
        for key, value in part.items():
            obj = _unsteered(obj, value, (*place, key))
    elif isinstance(part, list | tuple):
        for index, value in enumerate(part):
            obj = _unsteered(obj, value, (*place, index))
    return obj
