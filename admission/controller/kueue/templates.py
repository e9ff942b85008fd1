"""The pod specs of a job, wherever they stand in it, as they were before Kueue or may be after it.

    job, flavors -> job

Pure: copies what it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from admission.controller.kueue.flavors import Flavor
from admission.controller.kueue.workloads import Waiting
from admission.values import Json
from admission.workloads.fields import part, parts

MAX_DEPTH = 16
"""Of objects within objects: a JobSet's pod specs are at 7."""


def open_to(obj: Json, flavors: Iterable[Flavor]) -> Json:
    """Return *obj* with the tolerations of all *flavors*: open to the nodes of each of them."""
    more = [each for flavor in flavors for each in flavor.tolerations]

    def opened(pod: Json) -> Json:
        return {**pod, "tolerations": [*parts(pod.get("tolerations")), *more]}

    return _with_pods(obj, opened) if more else obj


def released(obj: Json, waiting: Waiting, flavors: Mapping[str, Flavor]) -> Json:
    """Return *obj*, which Kueue has started, without the labels of its flavors in its selectors.

    Those that a template had before, as the Workload remembers it, stay.
    """
    names = {name for each in waiting.pod_sets for name in each.flavors.values()}
    written = {
        key: text for name in names if name in flavors for key, text in flavors[name].labels.items()
    }
    for each in waiting.pod_sets:
        for key in part(part(each.template.get("spec")).get("nodeSelector")):
            written.pop(key, None)

    def freed(pod: Json) -> Json:
        selector = part(pod.get("nodeSelector"))
        kept = {key: text for key, text in selector.items() if written.get(key) != text}
        rest = {key: value for key, value in pod.items() if key != "nodeSelector"}
        return {**rest, "nodeSelector": kept} if kept else rest

    return _with_pods(obj, freed) if written else obj


def _with_pods(obj: Json, change: Callable[[Json], Json]) -> Json:
    found = _changed(obj, change, MAX_DEPTH)
    assert isinstance(found, Mapping), "an object stays one"
    return found


def _changed(part: Any, change: Callable[[Json], Json], depth: int) -> Any:
    if depth and isinstance(part, Mapping):
        if isinstance(part.get("containers"), list):
            return change(part)
        return {key: _changed(value, change, depth - 1) for key, value in part.items()}
    if depth and isinstance(part, list):
        return [_changed(value, change, depth - 1) for value in part]
    return part
