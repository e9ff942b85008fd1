"""Views remembered: what was read once is not read again for the next review of the same pods.

    Workload, NodeClasses, documents -> Views, from memory where nothing they are made of differs

`/mutate` and `/validate` see the same job one after the other, and the pods of one job, or the runs
of one CronJob, differ in their names alone. Entries are found by the digest of all that reading
looks at, the namespace among it: whoever finds one has sent all that it was made of. Not for
several threads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

import orjson

from admission.cache import Cache
from admission.capacity.eligibility import QUEUE_LABEL, Reach, reach_of
from admission.judge.views import View, Views
from admission.steer.notes import NOTES
from admission.steer.terms import RECORD
from admission.steer.writing import POLICY
from admission.values import Documents, Json, NodeClass, Reading, Unit, Workload

ENTRIES = 256
"""Workloads. Some 10 KiB each as a rule."""
MAX_TEXT = 32 << 10
"""Bytes of JSON in the readings of one workload: variables may make much of a small object."""
MAX_NODES = 100_000
"""Nodes in all remembered reaches together, which name each node twice or three times."""

_OURS = frozenset({*NOTES, RECORD})
_CONTAINERS = ("initContainers", "containers")
_PLACING = frozenset({"affinity", "nodeSelector", "schedulingGates"})
"""What of a pod spec says where and when it goes, not what runs in it: `/mutate` changes it."""
_RUNNING = frozenset({*_CONTAINERS, "volumes"})
"""What of a pod spec says what runs in it and nothing of where it goes."""
_UNIT = tuple(field.name for field in fields(Unit))
_WORKLOAD = tuple(
    field.name for field in fields(Workload) if field.name not in ("ref", "units", "metadata")
)


@dataclass(frozen=True, slots=True)
class _Understood:
    reading: Reading
    digest: str


class RememberedViews:
    """The views of workloads that were read before."""

    def __init__(self, *, entries: int = ENTRIES) -> None:
        self._entries = entries
        self._readings: Cache[bytes, tuple[_Understood, ...]] = Cache(entries=entries)
        self._reaches: Cache[bytes, Reach] = Cache(entries=entries)
        self._classes: Sequence[NodeClass] = ()

    def known(
        self, workload: Workload, *, classes: Sequence[NodeClass], documents: Documents
    ) -> Views | None:
        """Return what `read_views` would, None if it has to be asked.

        Raises:
            RequestError: if the pods' rules for nodes are malformed.
        """
        key = reading_key(workload, documents)
        understood = self._readings.get(key) if key is not None else None
        if understood is None:
            return None
        return tuple(
            View(
                unit=unit,
                reading=found.reading,
                digest=found.digest,
                reach=self._reach(unit, classes),
            )
            for unit, found in zip(workload.units, understood, strict=True)
        )

    def keep(
        self,
        workload: Workload,
        views: Views,
        *,
        classes: Sequence[NodeClass],
        documents: Documents,
    ) -> None:
        """Remember *views*, read of *workload* with *documents* where there were *classes*."""
        key = reading_key(workload, documents)
        if key is None or sum(_length(view.reading) for view in views) > MAX_TEXT:
            return
        self._readings.put(key, tuple(_Understood(view.reading, view.digest) for view in views))
        self._use(classes)
        for view in views:
            if (place := reach_key(view.unit)) is not None:
                self._reaches.put(place, view.reach)

    def _reach(self, unit: Unit, classes: Sequence[NodeClass]) -> Reach:
        self._use(classes)
        key = reach_key(unit)
        known = self._reaches.get(key) if key is not None else None
        if known is not None:
            return known
        reach = reach_of(unit, classes)
        if key is not None:
            self._reaches.put(key, reach)
        return reach

    def _use(self, classes: Sequence[NodeClass]) -> None:
        """Begin anew with *classes* if the nodes have changed."""
        if classes is self._classes:
            return
        num_nodes = sum(len(node_class.members) for node_class in classes)
        entries = min(self._entries, 1 + MAX_NODES // max(1, num_nodes))
        self._classes, self._reaches = classes, Cache(entries=entries)


def reading_key(workload: Workload, documents: Documents) -> bytes | None:
    """Return the digest of all that the readings of *workload* are made of, None without one.

    Left out are the object's name, labels and all that Kubernetes keeps of it, and what `/mutate`
    writes: our annotations, where the pods go, how a container ends.
    """
    parts = [
        workload.ref.api_version,
        workload.ref.kind,
        workload.ref.namespace,
        _annotations(workload.metadata),
        [getattr(workload, name) for name in _WORKLOAD],
        [_running(unit) for unit in workload.units],
        [(name, document) for name, document in documents.items()],
    ]
    return _digest(parts)


def reach_key(unit: Unit) -> bytes | None:
    """Return the digest of all that decides where the pods of *unit* may go, None without one."""
    return _digest(
        [
            unit.template,
            unit.gpu_resource,
            unit.pod_gpus,
            unit.share,
            _queue(unit.pod_metadata.get("labels")),
            _annotations(unit.pod_metadata),
            {key: value for key, value in unit.pod.items() if key not in _RUNNING},
        ]
    )


def _queue(labels: object) -> object:
    """Return the one label that counts. The others name the object, and differ by each."""
    return labels.get(QUEUE_LABEL) if isinstance(labels, Mapping) else [labels]


def _running(unit: Unit) -> list[object]:
    """Return *unit* as what runs in it."""
    program = unit.program
    changed: dict[str, object] = {
        "pod": _pod(unit.pod),
        "pod_metadata": _annotations(unit.pod_metadata),
        "container_spec": _container(unit.container_spec),
        "program": [
            None if program.container is unit.container_spec else _container(program.container),
            program.path,
            None if program.pod is unit.pod else _pod(program.pod),
        ],
    }
    return [changed.get(name, getattr(unit, name)) for name in _UNIT]


def _pod(pod: Json) -> dict[str, object]:
    found = {key: value for key, value in pod.items() if key not in _PLACING}
    for key in _CONTAINERS:
        items = found.get(key)
        if isinstance(items, list | tuple):
            found[key] = [_container(item) for item in items]
    return found


def _container(container: object) -> object:
    if not isinstance(container, Mapping) or POLICY not in container:
        return container
    return {key: value for key, value in container.items() if key != POLICY}


def _annotations(metadata: Json) -> object:
    annotations = metadata.get("annotations")
    if annotations is None:
        return {}
    if not isinstance(annotations, Mapping):
        return annotations
    return {key: value for key, value in annotations.items() if key not in _OURS}


def _digest(parts: object) -> bytes | None:
    """Return the digest of *parts*; None if they hold what JSON does not: those are read anew."""
    try:
        text = orjson.dumps(parts, default=_plain)
    except orjson.JSONEncodeError:
        return None
    return hashlib.blake2b(text, digest_size=32).digest()


def _length(reading: Reading) -> int:
    """Return about how large *reading* is; one with a Trace file is too large for certain."""
    if reading.recording is not None:
        return MAX_TEXT + 1
    parts = [reading.partial, reading.sources, reading.unknowns, reading.warnings, reading.wanted]
    try:
        return len(orjson.dumps(parts, default=_plain))
    except orjson.JSONEncodeError:
        return MAX_TEXT + 1


def _plain(value: object) -> object:
    """Return what JSON has for a fixed mapping or for a part of a card."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Fraction):
        return [value.numerator, value.denominator]
    raise TypeError
