"""Which cards hold all containers of one pod, and what they need there.

    UnitJudgements of one pod template -> Candidates

The largest need decides: all GPUs of a node are of one kind. Where no card surely holds the pod,
those count that may, and the need is the least one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from admission.codes import Verdict
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


def candidates_of(units: Sequence[UnitJudgement]) -> tuple[Candidate, ...]:
    """Return the classes open to the pod of *units*; none of them if they ask for other GPUs."""
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
    return tuple(_candidate(found, sure=sure) for found in together)


def _candidate(verdicts: Sequence[ClassVerdict], *, sure: bool) -> Candidate:
    holds = _all(verdicts, _SURE if sure else _MAYBE)
    node_class = verdicts[0].node_class
    needs = [_need(found.estimate, sure=sure) for found in verdicts if found.estimate is not None]
    reserved = node_class.device.reservation_bytes if node_class.device else 0
    need = max(needs, default=0) + reserved if holds else 0
    return Candidate(node_class=node_class, holds=holds, need_bytes=need)


def _need(estimate: Estimate, *, sure: bool) -> int:
    return estimate.enough.device_bytes if sure else estimate.least.device_bytes


def _all(verdicts: Sequence[ClassVerdict], accepted: Sequence[Verdict]) -> bool:
    return all(found.verdict in accepted for found in verdicts)
