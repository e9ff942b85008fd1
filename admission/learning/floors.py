"""Which floors hold for a workload that comes.

    Workload, what is known -> a Floor for each of its units, or none

By the object's own annotations, or by what is kept of a job of its name or of its controller's;
and in each case only for containers that are what they were.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from admission.floor import Floor
from admission.learning.corrections import NOTHING as NO_CORRECTIONS
from admission.learning.corrections import Corrections
from admission.learning.deaths import Death, Deaths, name_of
from admission.learning.fingerprint import fingerprint, is_same
from admission.learning.lesson import LEARNT, lesson_of
from admission.values import Json, Workload

if TYPE_CHECKING:
    from estimator.result import Estimate

Floors = tuple[Floor | None, ...]


class Learnt:
    """What is known now. `take` may be called at any time, by one thread."""

    def __init__(self, deaths: Deaths = (), corrections: Corrections = NO_CORRECTIONS) -> None:
        self._by_name: Mapping[tuple[str, str], tuple[Death, ...]] = {}
        self._namespaces: frozenset[str] = frozenset()
        self.corrections = corrections
        """Of estimates, by what was measured."""
        self.num_lessons = 0
        """How often something new was learnt: counted once it is known whole."""
        self.take(deaths, corrections)

    def take(self, deaths: Deaths, corrections: Corrections = NO_CORRECTIONS) -> None:
        """Know *deaths* and *corrections*, and nothing else any more."""
        self.corrections = corrections
        found: dict[tuple[str, str], list[Death]] = defaultdict(list)
        for death in deaths:
            for name in death.names:
                found[death.namespace, name].append(death)
        self._by_name = {key: tuple(each) for key, each in found.items()}
        self._namespaces = frozenset(namespace for namespace, _ in found)
        self.num_lessons += 1

    def knows_jobs_of(self, namespace: str) -> bool:
        """Return whether a job of *namespace* has taught anything: then names tell jobs apart."""
        return namespace in self._namespaces

    def floors(self, workload: Workload) -> Floors:
        """Return the floor of each unit of *workload*, in their order."""
        candidates = tuple(self._candidates(workload))
        if not candidates:
            return (None,) * len(workload.units)
        found = []
        for unit in workload.units:
            seen = fingerprint(unit, workload)
            same = [
                floor
                for learnt, floor in candidates
                if floor.container == unit.container
                and is_same(learnt, seen, is_made=workload.controlled)
            ]
            found.append(max(same, key=lambda floor: floor.nbytes, default=None))
        return tuple(found)

    def _candidates(self, workload: Workload) -> Iterator[tuple[str, Floor]]:
        annotations = workload.metadata.get("annotations")
        if isinstance(annotations, Mapping) and LEARNT in annotations:
            lesson = lesson_of(annotations)
            if lesson is not None:
                yield lesson.fingerprint, lesson.floor
        if not self._by_name:
            return
        for name in _names(workload):
            for death in self._by_name.get((workload.ref.namespace, name), ()):
                yield death.fingerprint, death.floor


def raised(estimate: Estimate, floor: Floor | None) -> Estimate:
    """Return *estimate* where nothing says that less than *floor* does; `least` stays.

    What the estimate did not see is put down as cached: the parts add up to the peak, and that one
    is no part of the need that messages speak of.
    """
    if floor is None or estimate.enough.device_bytes >= floor.nbytes <= estimate.peak.device_bytes:
        return estimate
    peak, most, enough = estimate.peak, estimate.most, estimate.enough
    missing = max(0, floor.nbytes - peak.device_bytes)
    cached = estimate.breakdown.cached + missing
    return estimate.model_copy(
        update={
            "enough": enough.model_copy(
                update={"device_bytes": max(enough.device_bytes, floor.nbytes)}
            ),
            "peak": peak.model_copy(update={"device_bytes": peak.device_bytes + missing}),
            "most": most.model_copy(update={"device_bytes": max(most.device_bytes, floor.nbytes)}),
            "breakdown": estimate.breakdown.model_copy(update={"cached": cached}),
        }
    )


def _names(workload: Workload) -> Iterator[str]:
    """Yield the names under which *workload*, or its controller, may be known."""
    ref, metadata = workload.ref, workload.metadata
    generated = str(metadata.get("generateName") or "")
    yield name_of(
        kind=ref.kind, api_version=ref.api_version, name=ref.name, generate_name=generated
    )
    for owner in _owners(metadata):
        yield name_of(
            kind=str(owner.get("kind")),
            api_version=str(owner.get("apiVersion")),
            name=str(owner.get("name")),
        )


def _owners(metadata: Json) -> Iterable[Json]:
    owners = metadata.get("ownerReferences")
    if not isinstance(owners, list):
        return ()
    return [each for each in owners if isinstance(each, Mapping) and each.get("controller") is True]
