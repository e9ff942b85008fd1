"""Jobs that died of too little GPU memory: told, remembered, and moved where that is allowed.

    a container's end -> Event, what it taught on its root and in the ConfigMap, a move wanted

A death is told once, on the root, whatever number of its pods died of it. What follows is written
on the object that is moved (`moving`); the duty `moves` does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from admission.controller.acts import (
    NOTHING,
    Act,
    Died,
    Learn,
    Look,
    Merge,
    Reason,
    Tell,
    Write,
)
from admission.controller.bounds import is_left_alone, is_own
from admission.controller.deaths import Death, Of, death_of, failed_first, is_full
from admission.controller.duty import Add, Quiet
from admission.controller.lessons import Known, known_of, lesson_of
from admission.controller.moving import MOVING, is_moving
from admission.controller.next_steps import Next, next_of
from admission.controller.parts import Parts
from admission.controller.pods import PodView, moment
from admission.controller.refs import Ref, ref_of
from admission.decision import OBSERVED_KINDS
from admission.errors import ClusterError, RequestError
from admission.learning.deaths import Death as Kept
from admission.learning.deaths import name_of
from admission.learning.lesson import LEARNT, Lesson
from admission.learning.lesson import lesson_of as read_lesson
from admission.steer.writing import unsteered
from admission.values import Json, Judgement

SAME_SECONDS = 30.0
"""Ranks that die on such a card within so long of each other, or again and again in place, died of
one thing: it is told once."""
OLD = timedelta(days=1)
"""Deaths of longer ago are history: a controller that is new here says nothing of them."""
PATIENCE_SECONDS = 1.0
"""A death is told soon: the estimate that is late is written on the object as it was admitted, and
what a move needs it for comes after the job was suspended."""
MOST_CLAIMS = 1000


@dataclass(frozen=True, slots=True)
class _Claim:
    """Which pod's death stands for those of its root, from when on."""

    key: str
    pod: str
    gave: int
    at: datetime


class Deaths(Quiet):
    """Looks after containers that ended with a status other than 0."""

    name = "deaths"

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._claims: dict[str, _Claim] = {}
        """By the root's UID: two ranks are looked at at once, before anything is written."""

    def pod_changed(self, pod: PodView, add: Add) -> None:
        """Look at *pod* if one of its containers may have died of this."""
        if pod.endings and not is_own(pod.ref.namespace, self._parts) and death_of(pod):
            add(pod.key, 0.0)

    async def look(self, key: str) -> Look:
        """Tell one death, unless it was told, and say what comes next."""
        pod = self._parts.store.pod(key)
        death = death_of(pod) if pod is not None else None
        if pod is None or death is None or self._is_old(death) or self._is_told(pod, death):
            return NOTHING
        chain = await self._chain(pod)
        if not chain or any(is_left_alone(obj, self._parts) for obj in chain):
            return NOTHING
        if any(obj.get("kind") in OBSERVED_KINDS for obj in chain):
            return NOTHING  # what serves is only counted, by the webhook
        judgement = await self._judged(chain[-1])
        known = known_of(
            death,
            judgement,
            node=pod.node,
            classes=self._parts.inventory.classes,
            annotations=chain[-1]["metadata"].get("annotations"),
        )
        if not self._is_death(known, pod) or _has_learnt(chain[-1], known):
            return NOTHING
        root = ref_of(chain[-1])
        if not self._claims_it(root, pod, known):
            return Look(again_seconds=2.0)
        lesson = lesson_of(known, judgement)
        coming = await next_of(self._parts, pod, chain, known, lesson)
        return Look(acts=(self._act(pod, chain, known, lesson, coming),))

    def _is_old(self, death: Death) -> bool:
        at = moment(death.ending.finished)
        return at is not None and self._parts.now() - at > OLD

    def _is_told(self, pod: PodView, death: Death) -> bool:
        """Return whether the pod itself, or the topmost of its owners that is followed, says so.

        What it says may be about a smaller card: then the cards are compared, later.
        """
        annotations, owner = pod.annotations, pod.owner
        for _ in range(8):
            workload = self._parts.store.workload_of_uid(owner.uid) if owner else None
            if workload is None:
                break
            annotations, owner = workload.annotations, workload.owner
        lesson = read_lesson(annotations) if LEARNT in annotations else None
        return lesson is not None and death.ending.finished <= lesson.floor.when

    async def _chain(self, pod: PodView) -> tuple[Json, ...]:
        """Return the pod's controllers, the direct one first; of a pod of nobody's, the pod."""
        if pod.owner is None:
            found = await self._parts.judges.read(pod.ref)
            return () if found is None else (found,)
        try:
            owner = await self._parts.judges.read(pod.owner)
        except ClusterError as error:
            if error.status != 403:
                raise
            return ()  # of a kind that is none of ours
        return () if owner is None else await self._parts.judges.owners(owner)

    async def _judged(self, root: Json) -> Judgement | None:
        try:
            return await self._parts.judges.judged(unsteered(root), seconds=PATIENCE_SECONDS)
        except RequestError:
            return None

    def _is_death(self, known: Known, pod: PodView) -> bool:
        """Return whether it died of its card: of a silent death, what it held and when tell."""
        if known.death.of is Of.GPU:
            return True
        estimate = known.on_card.estimate if known.on_card else None
        takes_all = estimate is not None and estimate.preallocated_bytes is not None
        if not known.gave or takes_all or known.is_shared or not is_full(known.death, known.gave):
            return False
        others = self._parts.store.pods_of(pod.owner.uid) if pod.owner else []
        return failed_first(known.death, [each for each in others if each.uid != pod.uid])

    def _claims_it(self, root: Ref, pod: PodView, known: Known) -> bool:
        now, held = self._parts.now(), self._claims.get(root.uid)
        # One that is gone can say nothing any more.
        first = self._parts.store.pod(held.key) if held is not None else None
        if (
            held is not None
            and held.pod != pod.uid
            and (first is not None and first.uid == held.pod)
            and known.gave <= held.gave
            and (now - held.at).total_seconds() < SAME_SECONDS
        ):
            return False
        self._claims.pop(root.uid, None)
        self._claims[root.uid] = _Claim(pod.key, pod.uid, known.gave, now)
        if len(self._claims) > MOST_CLAIMS:
            del self._claims[next(iter(self._claims))]
        return True

    def _act(
        self,
        pod: PodView,
        chain: tuple[Json, ...],
        known: Known,
        lesson: Lesson | None,
        coming: Next,
    ) -> Act:
        death, root = known.death, ref_of(chain[-1])
        tell = Tell(
            about=root,
            reason=Reason.OUT_OF_MEMORY,
            note=f"pod {pod.ref.name} {known.said}; next: {coming.text}",
            cause=f"{pod.uid} {death.ending.container} {death.ending.restarts}",
            is_warning=True,
            counts=Died(framework=known.framework, predicted=known.predicted),
        )
        writes: list[Write] = []
        if lesson is not None:
            names = tuple(map(_name, chain))
            kept = Kept(
                namespace=root.namespace,
                names=names[-8:],
                fingerprint=lesson.fingerprint,
                floor=lesson.floor,
            )
            # What only the pod itself would say is gone with it: the ConfigMap is first.
            writes = [Learn(death=kept), *_written(chain, lesson, coming)]
        return Act(tell=tell, writes=tuple(writes))


def _has_learnt(root: Json, known: Known) -> bool:
    """Return whether *root* says this death already, or one of the same moment on such a card."""
    annotations = (root.get("metadata") or {}).get("annotations") or {}
    lesson = read_lesson(annotations)
    if lesson is None:
        return False
    before, at = moment(lesson.floor.when), moment(known.death.ending.finished)
    if before is None or at is None or at <= before:
        return True
    if known.gave > lesson.floor.gave:
        return False
    # While it is being moved off such a card it dies there again where it is started in place.
    return is_moving(annotations) or (at - before).total_seconds() < SAME_SECONDS


def _written(chain: tuple[Json, ...], lesson: Lesson, coming: Next) -> list[Write]:
    """Return one write for each object: what was learnt, and the move that is wanted."""
    annotations: dict[str, dict[str, Any]] = {}
    objects = {ref_of(obj).uid: obj for obj in chain}
    root = ref_of(chain[-1]).uid
    taught = lesson.annotations()
    annotations[root] = dict(taught)
    if coming.moved is not None and coming.moving is not None:
        uid = ref_of(coming.moved).uid
        annotations.setdefault(uid, dict(taught))[MOVING] = coming.moving.text()
    return [
        Merge(
            on=ref_of(objects[uid]),
            # Its own controller writes at this very moment: no version is asked for. Nobody but us
            # writes these, and the same again changes nothing.
            changes={"metadata": {"annotations": added}},
        )
        for uid, added in annotations.items()
    ]


def _name(obj: Json) -> str:
    ref, metadata = ref_of(obj), obj.get("metadata") or {}
    is_run = any(each.get("controller") for each in metadata.get("ownerReferences") or ())
    generated = "" if is_run else str(metadata.get("generateName") or "")
    return name_of(
        kind=ref.kind, api_version=ref.api_version, name=ref.name, generate_name=generated
    )
