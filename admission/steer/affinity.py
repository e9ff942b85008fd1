"""Our terms put into a pod spec, and taken out of one.

    pod spec, Terms -> pod spec

The alternatives of a required affinity are ORed, so our expressions go into each; one that has no
requirement matches nothing and is left alone. Nothing that is not ours is moved or taken out.
Source: kubernetes v1.36.3 `staging/src/k8s.io/api/core/v1/types.go` (`NodeAffinity`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from admission.steer.places import Place, changed, found, mapping_at
from admission.steer.terms import Terms
from admission.values import Json

AFFINITY: Place = ("affinity",)
NODE: Place = (*AFFINITY, "nodeAffinity")
REQUIRED: Place = (*NODE, "requiredDuringSchedulingIgnoredDuringExecution")
ALTERNATIVES: Place = (*REQUIRED, "nodeSelectorTerms")
PREFERRED: Place = (*NODE, "preferredDuringSchedulingIgnoredDuringExecution")
SELECTOR: Place = ("nodeSelector",)


def missing_of(pod: Json, terms: Terms) -> Terms:
    """Return what of *terms* is to be added: not what *pod* says in the same words already.

    A label that the person selects by stays theirs.
    """
    selector, preferred = mapping_at(pod, SELECTOR), _list(pod, PREFERRED)
    return Terms(
        required=() if _all_say(_alternatives(pod), terms.required) else terms.required,
        preferred=() if all(each in preferred for each in terms.preferred) else terms.preferred,
        selector={key: value for key, value in terms.selector.items() if key not in selector},
    )


def with_terms(pod: Json, terms: Terms) -> Json:
    """Return *pod* with *terms* behind whatever it has."""
    alternatives = _alternatives(pod)
    if terms.required:
        new: list[Json] = [{"matchExpressions": list(terms.required)}]
        if alternatives is not None:
            new = [_widened(term, terms.required) for term in alternatives]
        pod = changed(pod, ALTERNATIVES, new)
    if terms.preferred:
        pod = changed(pod, PREFERRED, [*_list(pod, PREFERRED), *terms.preferred])
    for key, value in terms.selector.items():
        pod = changed(pod, (*SELECTOR, key), value)
    return pod


def without_terms(pod: Json, terms: Terms) -> Json:
    """Return *pod* without *terms*, and without what is empty once they are out."""
    alternatives = _alternatives(pod)
    if terms.required and alternatives is not None:
        kept = [_narrowed(term, terms.required) for term in alternatives]
        pod = changed(pod, ALTERNATIVES, [term for term in kept if term is not None])
        pod = _pruned(pod, ALTERNATIVES, floor=len(AFFINITY))
    if terms.preferred and _list(pod, PREFERRED):
        pod = changed(pod, PREFERRED, _less(_list(pod, PREFERRED), terms.preferred))
        pod = _pruned(pod, PREFERRED, floor=len(AFFINITY))
    for key, value in terms.selector.items():
        if mapping_at(pod, SELECTOR).get(key) == value:
            pod = _pruned(changed(pod, (*SELECTOR, key), None), SELECTOR, floor=len(SELECTOR))
    return pod


def has_terms(pod: Json, terms: Terms) -> bool:
    """Return whether *pod* has all of *terms* wherever they belong."""
    selector, preferred = mapping_at(pod, SELECTOR), _list(pod, PREFERRED)
    return (
        (not terms.required or _all_say(_alternatives(pod), terms.required))
        and all(term in preferred for term in terms.preferred)
        and all(selector.get(key) == value for key, value in terms.selector.items())
    )


def _alternatives(pod: Json) -> Sequence[Any] | None:
    """Return the alternatives of the required affinity; None if there is none."""
    return _list(pod, ALTERNATIVES) if found(pod, REQUIRED) is not None else None


def _all_say(alternatives: Sequence[Any] | None, expressions: Sequence[Json]) -> bool:
    live = [term for term in alternatives or () if not _is_empty(term)]
    return bool(live) and all(
        expression in _expressions(term) for term in live for expression in expressions
    )


def _widened(term: Json, expressions: Sequence[Json]) -> Json:
    if _is_empty(term):
        return term
    return {**term, "matchExpressions": [*_expressions(term), *expressions]}


def _narrowed(term: Json, expressions: Sequence[Json]) -> Json | None:
    """Return *term* without *expressions*; None if it said nothing else."""
    if _is_empty(term):
        return term
    kept = _less(_expressions(term), expressions)
    if kept:
        return {**term, "matchExpressions": kept}
    rest = {key: value for key, value in term.items() if key != "matchExpressions"}
    return None if _is_empty(rest) else rest


def _is_empty(term: Json) -> bool:
    return not term.get("matchExpressions") and not term.get("matchFields")


def _expressions(term: Json) -> Sequence[Json]:
    return term.get("matchExpressions") or []


def _less(items: Sequence[Json], ours: Sequence[Json]) -> list[Json]:
    """Return *items* without the last that equals each of *ours*: those were appended."""
    kept = list(items)
    for item in ours:
        if item in kept:
            del kept[len(kept) - 1 - kept[::-1].index(item)]
    return kept


def _pruned(pod: Json, place: Place, *, floor: int) -> Json:
    """Return *pod* without what is empty at *place*, and above it down to *floor* keys."""
    while len(place) >= floor and found(pod, place) in ([], {}):
        pod, place = changed(pod, place, None), place[:-1]
    return pod


def _list(pod: Json, place: Place) -> list[Any]:
    value = found(pod, place)
    return list(value) if isinstance(value, list | tuple) else []
