"""Pods that wait because of our steering are told which card is missing, and let go if they may be.

    unschedulable pod, cards, who has them -> Event; with `controller.relaxSteering` the next card

Whether it is our steering is asked of the cluster: where the pod could go without our terms and not
with them, while no card that they leave is free. A pod's own affinity is fixed by then, so all that
can be relaxed is the template that a deleted pod is made anew from. Only training-operator's kinds
let it change after the start (`REMADE`); of all others people are told:

* Job, JobSet: the template is fixed once it has started, and we suspend nothing to change it.
* CronJob: what runs is a Job; to change all runs to come for one that waits would be too much.
* LeaderWorkerSet: a change starts all of its pods anew.
* pods that are steered at their own CREATE (Volcano, Ray, Argo, TrainJob): made as before again.
* a pod of nobody's: nobody would make another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from admission.capacity.eligibility import reach_of
from admission.codes import NOT_YET, Verdict
from admission.controller.acts import (
    NOTHING,
    Act,
    Cause,
    Look,
    Operate,
    Reason,
    Remove,
    Tell,
    Write,
)
from admission.controller.bounds import is_left_alone, is_own
from admission.controller.card_words import card_missing, let_go
from admission.controller.duty import Add, Quiet
from admission.controller.parts import Parts
from admission.controller.pods import PodView
from admission.controller.refs import Ref, ref_of
from admission.controller.telling import moves_pods, same_version
from admission.controller.usage import CardUse, taken_by_node, uses_of
from admission.errors import RequestError
from admission.steer.affinity import has_terms
from admission.steer.permission import REMADE, is_queued
from admission.steer.terms import RECORD, recorded
from admission.steer.writing import unsteered
from admission.values import Json, Judgement, NodeClass, Unit, UnitJudgement
from admission.workloads import read_workload

PAUSE_SECONDS = 5.0
USE_SECONDS = 2.0
"""How long a count of what is taken is used: walking all pods takes a while."""
MOST_TOLD = 10_000


class Stuck(Quiet):
    """Looks after pods that our steering keeps waiting."""

    name = "stuck"

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._told: set[str] = set()
        self._taken: Mapping[tuple[str, str], int] = {}
        self._counted: datetime | None = None

    def pod_changed(self, pod: PodView, add: Add) -> None:
        """Look at *pod* once it has waited for long enough."""
        if self._waits(pod) and not self._is_done(pod):
            add(pod.key, max(0.0, self._left(pod)))

    async def look(self, key: str) -> Look:
        """Tell of one pod what it waits for, and let it go elsewhere if that may be."""
        pod = self._parts.store.pod(key)
        if pod is None or not self._waits(pod) or self._is_done(pod):
            return NOTHING
        if (left := self._left(pod)) > 0:
            return Look(again_seconds=left)
        obj = await self._parts.judges.read(pod.ref)
        if obj is None or is_left_alone(obj, self._parts) or is_queued(obj["metadata"]):
            return NOTHING
        found = self._cards(obj)
        if found is None:
            return NOTHING
        unit, left_open, shut = found
        if any(use.is_free for use in left_open):
            # Something else is missing: a processor, memory, room for its volume.
            return Look(again_seconds=self._parts.settings.stuck_seconds)
        root = await self._parts.judges.root(obj)
        judgement = await self._parts.judges.judged(unsteered(root))
        if any(judged.reason in NOT_YET for judged in judgement.units):
            return Look(again_seconds=PAUSE_SECONDS)
        judged = _of(unit, judgement)
        note = card_missing(judged, left_open, shut, gpus=unit.pod_gpus, root=ref_of(root).said)
        tell = Tell(about=pod.ref, reason=Reason.CARD_MISSING, note=note, is_warning=True)
        acts = [Act(tell=tell)]
        again = None
        if self._parts.settings.relax_steering and judged is not None:
            acts += await self._relaxed(pod.ref, obj, root, judged, shut)
            again = self._parts.settings.stuck_seconds
        self._told = {pod.uid} if len(self._told) >= MOST_TOLD else self._told | {pod.uid}
        return Look(acts=tuple(acts), again_seconds=again)

    def _waits(self, pod: PodView) -> bool:
        """Return whether *pod* was steered and fits nowhere. A queue's pods are left to it."""
        return (
            pod.unschedulable is not None
            and pod.node is None
            and pod.phase == "Pending"
            and RECORD in pod.annotations
            and not (pod.has_gates or pod.is_going or pod.queue)
            and not is_own(pod.ref.namespace, self._parts)
        )

    def _is_done(self, pod: PodView) -> bool:
        """Return whether nothing is left to be done for *pod* but to wait."""
        return pod.uid in self._told and not self._parts.settings.relax_steering

    def _left(self, pod: PodView) -> float:
        """Return the seconds until *pod* counts as stuck."""
        since = pod.unschedulable_since
        waited = (self._parts.now() - since).total_seconds() if since else 0.0
        return self._parts.settings.stuck_seconds - waited

    def _cards(self, obj: Json) -> tuple[Unit, tuple[CardUse, ...], tuple[CardUse, ...]] | None:
        """Return a unit of the pod, and the cards that our terms leave it and shut to it.

        None where they shut none: then it is not our steering that it waits for.
        """
        ours = recorded(obj["metadata"])
        if not (ours.required or ours.selector) or not has_terms(obj["spec"], ours):
            return None
        try:
            units, bare = (read_workload(each).units for each in (obj, unsteered(obj)))
            if not units:
                return None
            classes = self._parts.inventory.classes
            with_ours = reach_of(units[0], classes).reachable
            without = reach_of(bare[0], classes).reachable
        except RequestError:
            return None
        open_nodes = {name for node_class in with_ours for name in node_class.nodes}
        shut = [_but(node_class, open_nodes) for node_class in without]
        shut = [node_class for node_class in shut if node_class.nodes]
        if not shut:
            return None
        return units[0], self._uses(with_ours, units[0]), self._uses(shut, units[0])

    def _uses(self, classes: Sequence[NodeClass], unit: Unit) -> tuple[CardUse, ...]:
        now = self._parts.now()
        if self._counted is None or (now - self._counted).total_seconds() >= USE_SECONDS:
            self._taken, self._counted = taken_by_node(self._parts.store.pods()), now
        is_there = self._parts.inventory.is_there
        return uses_of(classes, self._taken, wanted=unit.pod_gpus, is_there=is_there)

    async def _relaxed(
        self, ref: Ref, obj: Json, root: Json, judged: UnitJudgement, shut: Sequence[CardUse]
    ) -> list[Act]:
        """Return what lets the pod *ref* onto a card that is free and may hold it; maybe nothing.

        The template first, then the pod: after a death in between the pod is deleted still, since
        it is not what its template says any more. A pod that is, is never deleted.
        """
        about = ref_of(root)
        may = {found.node_class.name for found in judged.classes if found.verdict in _MAY_HOLD}
        targets = [use for use in shut if use.is_free and use.name in may]
        if not targets or (about.group, about.kind) not in REMADE:
            return []
        taken = await self._parts.judges.take_up(root, relaxes=True)
        text = (obj["metadata"].get("annotations") or {}).get(RECORD)
        writes: list[Write] = []
        if taken.judgement.verdict in _MAY_HOLD and moves_pods(taken.patch):
            writes.append(Operate(on=about, operations=(same_version(root), *taken.patch)))
        elif taken.is_late or text in _records(root):
            return []
        writes.append(Remove(on=ref))
        tell = Tell(
            about=about,
            reason=Reason.RELAXED,
            note=let_go(ref.name, targets, judged),
            cause=ref.uid,
            is_warning=True,
        )
        return [Act(tell=tell, writes=tuple(writes), cause=Cause.STUCK)]


_MAY_HOLD = (Verdict.FITS, Verdict.TIGHT)


def _of(unit: Unit, judgement: Judgement) -> UnitJudgement | None:
    """Return what *unit* needs on each card, as its root says; None if that is not known."""
    known = [judged for judged in judgement.units if judged.estimate is not None]
    same = [judged for judged in known if judged.unit.container == unit.container]
    return next(iter(same or known), None)


def _but(node_class: NodeClass, nodes: set[str]) -> NodeClass:
    """Return *node_class* without *nodes*."""
    members = tuple(member for member in node_class.members if member.name not in nodes)
    names = tuple(member.name for member in members)
    return replace(node_class, members=members, nodes=names, count=len(names))


def _records(part: object) -> set[str]:
    """Return what the pod templates in *part* say that we added to them."""
    if isinstance(part, Mapping):
        annotations = part.get("annotations")
        own = annotations.get(RECORD) if isinstance(annotations, Mapping) else None
        found = {own} if isinstance(own, str) else set()
        return found.union(*(_records(value) for value in part.values()))
    if isinstance(part, list | tuple):
        return set().union(*(_records(value) for value in part))
    return set()
