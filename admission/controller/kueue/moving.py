"""How a queued job is led to another flavor: by what Kueue compares flavors with.

    flavors that hold it, all of its group, job -> the job with terms that lead there

Kueue compares the required node affinity and the nodeSelector of a template with the labels of
flavors, and only with those keys that a flavor of the group has. It does so when it makes the
Workload, so the one that is there has to go. Stopping a job it writes back the annotations that the
template had, not the affinity: what was added is therefore written down on the object itself.
Source: kubernetes-sigs/kueue v0.19.2 `pkg/scheduler/flavorassigner/flavorassigner.go`
(`flavorSelector`), `pkg/podset/podset.go` (`RestorePodSpec`), `pkg/util/equality/podset.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from admission.capacity.constraints import Requirement, Term, affinity_allows
from admission.controller.kueue.flavors import Flavor
from admission.steer.affinity import with_terms, without_terms
from admission.steer.notes import PREFIX
from admission.steer.permission import Place
from admission.steer.places import changed, mapping_at, place_of
from admission.steer.terms import MAX_RECORD, NOTHING, Terms
from admission.values import Json, NodeFacts
from admission.workloads.fields import part, parts, word

LED = f"{PREFIX}queue-terms"
"""Annotation on the job (JSON): pod template -> the terms that lead to another flavor."""
MOVES = f"{PREFIX}queue-moves"
"""Annotation on the job: how often it was led to another flavor."""
_FIRST = ("nvidia.com/gpu.product", "nvidia.com/gpu.memory")
"""Keys that say best, to a person, what flavors differ by."""
_KINDS: Mapping[tuple[str, str], Place] = {
    ("batch", "Job"): Place.AFFINITY,
    ("jobset.x-k8s.io", "JobSet"): Place.SELECTOR,
    **{
        ("kubeflow.org", kind): Place.AFFINITY
        for kind in ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
    },
}
"""Kinds whose templates may change while they are suspended, and what of them."""


def place_for(obj: Json) -> Place:
    """Return by what the pods of a suspended *obj* can be led elsewhere."""
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    return _KINDS.get((group, str(obj.get("kind"))), Place.NOWHERE)


def terms_for(
    holding: Sequence[Flavor], group: Sequence[Flavor], *, place: Place, pod: Json
) -> Terms | None:
    """Return terms that open the flavors *holding*, the best first, and close others of *group*.

    None if labels do not tell them apart, or *pod*, without our terms, says otherwise.
    """
    names = {flavor.name for flavor in holding}
    others = [flavor for flavor in group if flavor.name not in names]
    for terms in _candidates(holding, others, place):
        led = with_terms(pod, terms)
        if opens(led, holding[0], group) and not any(opens(led, one, group) for one in others):
            return terms
    return None


def led_terms(obj: Json) -> Mapping[str, Terms]:
    """Return the terms of an earlier move, by template, as *obj* says them."""
    annotations = mapping_at(obj, ("metadata", "annotations"))
    text = annotations.get(LED)
    if not isinstance(text, str) or len(text) > MAX_RECORD:
        return {}
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(document, dict):
        return {}
    return {str(key): _terms(value) for key, value in document.items() if isinstance(value, dict)}


def moves_of(obj: Json) -> int:
    """Return how often *obj* was moved, as it says."""
    text = str(mapping_at(obj, ("metadata", "annotations")).get(MOVES, ""))
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def unled(obj: Json) -> Json:
    """Return *obj* without the terms of earlier moves."""
    for template, terms in led_terms(obj).items():
        place = place_of(template)
        if place is not None and (pod := mapping_at(obj, (*place, "spec"))):
            obj = changed(obj, (*place, "spec"), without_terms(pod, terms))
    return obj


def led(obj: Json, wanted: Mapping[str, Terms]) -> Json:
    """Return *obj* with *wanted* (by template) instead of the terms of earlier moves there.

    Equal to *obj* if it has them already: a move that was begun is not begun again.
    """
    before = led_terms(obj)
    if all(before.get(template, NOTHING) == terms for template, terms in wanted.items()):
        return obj
    after = obj
    for template, terms in wanted.items():
        place = place_of(template)
        assert place is not None, "templates that stand in the object"
        pod = mapping_at(after, (*place, "spec"))
        pod = with_terms(without_terms(pod, before.get(template, NOTHING)), terms)
        after = changed(after, (*place, "spec"), pod)
    texts = {key: orjson.Fragment(terms.text()) for key, terms in {**before, **wanted}.items()}
    record = orjson.dumps(texts, option=orjson.OPT_SORT_KEYS).decode()
    annotations = ("metadata", "annotations")
    after = changed(after, (*annotations, LED), record)
    return changed(after, (*annotations, MOVES), str(moves_of(obj) + 1))


def is_built_of(pod_set: Json, pod: Json) -> bool:
    """Return whether the template of a pod set asks the same of nodes as *pod* does by now."""
    spec = part(pod_set.get("spec"))
    return all(
        (spec.get(key) or {}) == (pod.get(key) or {}) for key in ("nodeSelector", "affinity")
    )


def _candidates(holding: Sequence[Flavor], others: Sequence[Flavor], place: Place) -> list[Terms]:
    """Return terms worth trying: one label for all that hold it, then the labels of the best."""
    best, found = holding[0], []
    keys = dict.fromkeys((*_FIRST, *sorted(best.labels)))
    for key in keys:
        if key not in best.labels:
            continue
        if place is Place.SELECTOR:
            found.append(Terms(selector={key: best.labels[key]}))
            continue
        apart = {each.labels[key] for each in others if key in each.labels}
        values = {each.labels[key] for each in holding if key in each.labels} - apart
        if best.labels[key] in values:
            found.append(Terms(required=(_in(key, sorted(values)),)))
    if place is Place.AFFINITY and best.labels:
        every = tuple(_in(key, [text]) for key, text in sorted(best.labels.items()))
        found.append(Terms(required=every))
    if place is Place.SELECTOR and best.labels:
        found.append(Terms(selector=dict(best.labels)))
    return found


def _in(key: str, values: list[str]) -> Json:
    return {"key": key, "operator": "In", "values": values}


def opens(pod: Json, flavor: Flavor, group: Sequence[Flavor]) -> bool:
    """Return whether Kueue gives *flavor*, one of *group*, to *pod* for all that labels say."""
    keys = {key for flavor in group for key in flavor.labels}
    selector = {key: text for key, text in part(pod.get("nodeSelector")).items() if key in keys}
    terms = _compared(pod, keys)
    return all(flavor.labels.get(key) == text for key, text in selector.items()) and (
        affinity_allows(terms, NodeFacts(name="", labels=flavor.labels))
    )


def _compared(pod: Json, keys: set[str]) -> list[Term] | None:
    """Return the alternatives of the required affinity as Kueue compares them; None for all.

    An alternative that says nothing of *keys* is met by every flavor.
    """
    affinity = mapping_at(pod, ("affinity", "nodeAffinity"))
    required = part(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    found = []
    for term in parts(required.get("nodeSelectorTerms")):
        asked = parts(term.get("matchExpressions"))
        expressions = [each for each in asked if word(each.get("key")) in keys]
        if not expressions:
            return None
        found.append(Term(labels=tuple(map(_requirement, expressions)), fields=()))
    return found or None


def _requirement(expression: Json) -> Requirement:
    values = expression.get("values")
    return Requirement(
        key=word(expression["key"]),
        operator=word(expression.get("operator")),
        values=tuple(map(str, values)) if isinstance(values, list) else (),
    )


def _terms(document: Mapping[str, Any]) -> Terms:
    required, selector = document.get("required"), document.get("selector")
    items = required if isinstance(required, list) else []
    return Terms(
        required=tuple(each for each in items if isinstance(each, dict) and each),
        selector=selector if isinstance(selector, dict) else {},
    )
