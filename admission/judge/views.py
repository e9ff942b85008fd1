"""What is understood of a workload's units before anybody is asked.

    Workload, NodeClasses, documents -> Views

Pure: safe in any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from admission.capacity.eligibility import Reach, reach_of
from admission.detect import read_unit
from admission.floor import Floor
from admission.values import NO_DOCUMENTS, Documents, NodeClass, Reading, Unit, Workload

if TYPE_CHECKING:
    from admission.learning.floors import Learnt


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One unit with what was understood of it and where its pods may go."""

    unit: Unit
    reading: Reading
    digest: str
    """Of the spec that was read, by which answers are remembered; empty without one."""
    reach: Reach
    floor: Floor | None = None
    """What an earlier run of the same container taught."""


Views = tuple[View, ...]


def read_views(
    workload: Workload,
    *,
    classes: Sequence[NodeClass],
    documents: Documents = NO_DOCUMENTS,
) -> Views:
    """Return each unit of *workload* as it is understood with *documents*.

    Raises:
        RequestError: if a field has the wrong type.
    """
    return tuple(_view(unit, workload, classes, documents) for unit in workload.units)


def with_floors(views: Views, workload: Workload, learnt: Learnt | None) -> Views:
    """Return *views* with what is learnt of each unit."""
    floors = learnt.floors(workload) if learnt is not None else ()
    if not any(floors):
        return views
    return tuple(replace(view, floor=floor) for view, floor in zip(views, floors, strict=True))


def digest_of(reading: Reading) -> str:
    """Return the digest of the spec that was read, empty if there is none."""
    return reading.spec.digest() if reading.spec is not None else ""


def _view(
    unit: Unit,
    workload: Workload,
    classes: Sequence[NodeClass],
    documents: Documents,
) -> View:
    reading = read_unit(unit, workload=workload, documents=documents)
    return View(
        unit=unit, reading=reading, digest=digest_of(reading), reach=reach_of(unit, classes)
    )
