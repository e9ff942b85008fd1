"""Kinds that the settings describe: where their pod templates stand.

KindSettings -> Kind

A path is names joined by dots; `[*]` behind one stands for each item of a list or a mapping.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from admission.errors import SettingsError
from admission.values import Documents, Json
from admission.workloads.fields import ONE, Amount, amount, mapping, wrong
from admission.workloads.kind import Kind, Kinds, Pods
from admission.workloads.started import by_status
from admission.workloads.units import Template, limited, template_of
from estimator.errors import Problem

if TYPE_CHECKING:
    from admission.workload_settings import KindSettings, KindTemplate

EACH = "[*]"
MAX_FOUND = 256


def with_custom(known: Kinds, wanted: Sequence[KindSettings]) -> Kinds:
    """Return *known* with the kinds of the settings.

    Raises:
        SettingsError: if one of them is known already, or given twice.
    """
    found = dict(known)
    problems = []
    for index, settings in enumerate(wanted):
        name = (settings.group, settings.kind)
        if name in found:
            message = f"{'/'.join(filter(None, name))} is read already"
            problems.append(Problem(path=f"workloads.kinds[{index}]", message=message))
        found[name] = _kind(settings)
    if problems:
        raise SettingsError(problems)
    return found


def _kind(settings: KindSettings) -> Kind:
    def read(obj: Json, _documents: Documents) -> Pods:
        found = tuple(
            template for wanted in settings.templates for template in _templates(obj, wanted)
        )
        limited(found, "object", what="pod templates")
        framework = settings.framework.value if settings.framework else ""
        return Pods(templates=found, framework=framework)

    return Kind(read=read, has_started=by_status, observe_only=settings.observe_only)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Something found in an object, with the keys and numbers that `[*]` stood for."""

    value: object
    path: str
    chosen: tuple[str | int, ...] = ()


def _templates(obj: Json, wanted: KindTemplate) -> Iterator[Template]:
    for place in _places(obj, wanted.path):
        if place.value is None:
            continue
        names = [str(name) for name in place.chosen if isinstance(name, str)]
        yield template_of(
            place.value,
            place.path,
            role=wanted.role or (names[-1] if names else "main"),
            replicas=_replicas(obj, wanted, place),
        )


def _replicas(obj: Json, wanted: KindTemplate, template: _Place) -> Amount:
    """Return the number at the path beside the template: `[*]` stands for the same there."""
    if wanted.replicas_path is None:
        return ONE
    for place in _places(obj, wanted.replicas_path):
        if place.chosen == template.chosen[: len(place.chosen)]:
            return amount(place.value, place.path)
    return ONE


def _places(obj: Json, path: str) -> list[_Place]:
    """Return everything at *path*; what is not there is None."""
    found = [_Place(value=obj, path="")]
    for part in path.split("."):
        key = part.removesuffix(EACH)
        stepped = []
        for place in found:
            where = f"{place.path}.{key}" if place.path else key
            value = mapping(place.value, place.path).get(key)
            inner = _Place(value=value, path=where, chosen=place.chosen)
            stepped += _each(inner) if part.endswith(EACH) else [inner]
        found = stepped[:MAX_FOUND]
    return found


def _each(place: _Place) -> list[_Place]:
    value = place.value
    if value is None:
        return []
    if isinstance(value, Mapping):
        items: list[tuple[str | int, object, str]] = [
            (name, item, f"{place.path}.{name}")
            for name, item in mapping(value, place.path).items()
        ]
    elif isinstance(value, list | tuple):
        items = [(_name(item, at), item, f"{place.path}[{at}]") for at, item in enumerate(value)]
    else:
        raise wrong(place.path, value, "a list or a mapping")
    return [
        _Place(value=item, path=where, chosen=(*place.chosen, name)) for name, item, where in items
    ]


def _name(item: object, index: int) -> str | int:
    """Return the name of a list's item, if it has one that is text."""
    name = item.get("name") if isinstance(item, Mapping) else None
    return name if isinstance(name, str) and name else index
