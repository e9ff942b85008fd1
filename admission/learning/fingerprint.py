"""What tells whether a container is the one that an earlier run was: what it runs, with what.

    container, annotations of the owner's word -> text of some hundred characters

Image, command, arguments, variables, and the spec that people state. Resources and placement are
left out: a job with other cards is the same job, one with another batch size is another.
Not seen: what an image tag, a ConfigMap or a Secret holds by then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from admission.values import Json, Unit, Workload

SPECS = ("vramgate.dev/spec", "vramgate.dev/spec-ref")
MAX_VARIABLES = 64
"""Variables that are told apart; of more than that, all count as one."""
MAX_TEXT = 1024
_PROGRAM, _PART = 16, 8
_FILLED_IN = ("apiVersion", "divisor")
"""Of `fieldRef` and `resourceFieldRef`: what a pod has that its template may not."""


def fingerprint(unit: Unit, workload: Workload) -> str:
    """Return the fingerprint of *unit*: `PROGRAM.STARTER.SPEC.VARIABLE,VARIABLE`.

    The starter is the container whose command line says what runs, where that is another's.
    """
    own, program = unit.container_spec, unit.program.container
    starter = "" if program is own or program == own else _digest([_words(program), _set(program)])
    stated = [_stated(metadata) for metadata in (workload.metadata, unit.pod_metadata)]
    spec = _digest(stated)[:_PART] if any(stated) else ""
    variables = sorted({_digest(pair)[:_PART] for pair in _set(own)})
    if len(variables) > MAX_VARIABLES:
        variables = [_digest(variables)[:_PART]]
    return ".".join((_digest(_words(own))[:_PROGRAM], starter[:_PART], spec, ",".join(variables)))


def is_same(learnt: str, seen: str, *, is_made: bool) -> bool:
    """Return whether *seen* is what *learnt* was of.

    What a controller made (*is_made*) has variables more than its template, and of what is stated
    on its owner it has nothing.
    """
    if learnt == seen:
        return True
    before, now = learnt.split("."), seen.split(".")
    if not is_made or len(before) != 4 or len(now) != 4 or before[0] != now[0]:
        return False
    return set(_listed(before[3])) <= set(_listed(now[3]))


def _listed(text: str) -> list[str]:
    return [each for each in text.split(",") if each]


def _words(container: Json) -> list[Any]:
    return [container.get("image"), container.get("command"), container.get("args")]


def _set(container: Json) -> list[Any]:
    """Return the variables; of one that stands elsewhere, where, but for what is filled in."""
    pairs: list[Any] = []
    for each in _mappings(container.get("env")):
        source = each.get("valueFrom")
        value = _source(source) if isinstance(source, Mapping) else str(each.get("value") or "")
        pairs.append([str(each.get("name")), value])
    pairs += [["", _source(each)] for each in _mappings(container.get("envFrom"))]
    return pairs


def _source(source: Json) -> Any:
    """Return *source* without the defaults that the API server fills in."""
    return {
        key: {name: text for name, text in value.items() if name not in _FILLED_IN}
        if isinstance(value, Mapping)
        else value
        for key, value in source.items()
    }


def _stated(metadata: Json) -> list[str]:
    annotations = metadata.get("annotations")
    if not isinstance(annotations, Mapping):
        return []
    return [str(annotations[key]) for key in SPECS if key in annotations]


def _mappings(value: object) -> Iterable[Json]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _digest(value: Any) -> str:
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str)
    return hashlib.sha256(text).hexdigest()
