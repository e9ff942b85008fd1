"""Which cards hold all containers of one pod, and what they need there.

    UnitJudgements of one pod template -> Candidates

The largest need decides: all GPUs of a node are of one kind. Where no card surely holds the pod,
those count that may, and the need is the least one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from admission.codes import Verdict
from admission.decision import budget_of
from admission.values import ClassVerdict, NodeClass, UnitJudgement
from estimator.result import Estimate

_SURE = (Verdict.FITS,)
_MAYBE = (Verdict.FITS, Verdict.TIGHT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One class of nodes that the pod may go to as it is."""

    node_class: NodeClass
    holds: bool
    need_bytes: int
    """What the card must have in all for it, the driver's own reservation included; 0 unless
    `holds`."""


def candidates_of(
    units: Sequence[UnitJudgement], *, relaxes: bool = False
) -> tuple[Candidate, ...]:
    """Return the classes open to the pod of *units*; none of them if they ask for other GPUs.

    With *relaxes* the largest of those that may hold it counts beside those that surely do.
    """
    if len({judged.unit.gpu_resource for judged in units}) != 1:
        return ()
    by_class: dict[tuple[str, tuple[str, ...]], list[ClassVerdict]] = {}
    for judged in units:
        for found in judged.classes:
            if found.node_class.members:
                key = (found.node_class.name, found.node_class.nodes)
                by_class.setdefault(key, []).append(found)
    together = [found for found in by_class.values() if len(found) == len(units)]
    sure = any(_all(found, _SURE) for found in together)
    next_name = _next(together) if relaxes and sure else None
    floor = _floor(units, together)
    return tuple(
        _candidate(found, sure=sure and found[0].node_class.name != next_name, floor=floor)
        for found in together
    )


def _floor(units: Sequence[UnitJudgement], together: Sequence[Sequence[ClassVerdict]]) -> int:
    """Return what an earlier run taught that a card must give; 0 if none gives as much."""
    floor = max((judged.floor.nbytes for judged in units if judged.floor), default=0)
    larger = [found for found in together if (budget_of(found[0].node_class) or 0) >= floor]
    return floor if any(_all(found, _MAYBE) for found in larger) else 0


def _next(together: Sequence[Sequence[ClassVerdict]]) -> str | None:
    """Return the name of the largest class that may hold the pod and does not surely."""
    may = [found for found in together if _all(found, _MAYBE) and not _all(found, _SURE)]
    largest = max(may, key=lambda found: budget_of(found[0].node_class) or 0, default=None)
    return largest[0].node_class.name if largest else None


def _candidate(verdicts: Sequence[ClassVerdict], *, sure: bool, floor: int) -> Candidate:
    node_class = verdicts[0].node_class
    is_large = (budget_of(node_class) or 0) >= floor
    holds = is_large and _all(verdicts, _SURE if sure else _MAYBE)
    needs = [_need(found.estimate, sure=sure) for found in verdicts if found.estimate is not None]
    reserved = node_class.device.reservation_bytes if node_class.device else 0
    need = max(needs, default=0)
    need = max(need, floor) + reserved if holds else 0
    return Candidate(node_class=node_class, holds=holds, need_bytes=need)


def _need(estimate: Estimate, *, sure: bool) -> int:
    return estimate.enough.device_bytes if sure else estimate.least.device_bytes


def _all(verdicts: Sequence[ClassVerdict], accepted: Sequence[Verdict]) -> bool:
    return all(found.verdict in accepted for found in verdicts)
