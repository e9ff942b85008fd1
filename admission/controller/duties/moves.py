"""Workloads whose move is wanted are moved: suspended, changed and resumed, or their pods deleted.

    `vramgate.dev/moving` on a workload -> the next step

Each step is one write that names what it was decided on, so it is taken once, whoever is killed
when. What was suspended here is resumed here, steered or not: nobody else would.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from admission.codes import Steer
from admission.controller.acts import (
    NOTHING,
    Act,
    Cause,
    Look,
    Merge,
    Operate,
    Reason,
    Remove,
    Tell,
    Write,
)
from admission.controller.bounds import is_left_alone
from admission.controller.changing import as_new, guards, leads_elsewhere, noted
from admission.controller.duty import Add, Quiet
from admission.controller.movable import CRONJOB, has_ended, is_idle, suspension
from admission.controller.moving import MOVING, Moving, Step, moving_of
from admission.controller.next_steps import pods_below
from admission.controller.parts import Parts
from admission.controller.refs import Ref, ref_of
from admission.controller.telling import moves_pods, same_version
from admission.controller.tracked import Tracked
from admission.controller_settings import Moved
from admission.errors import RequestError
from admission.learning.lesson import LEARNT
from admission.steer.permission import is_queued, is_suspended
from admission.steer.places import Place, changed, found, pointer
from admission.steer.plan import HELD
from admission.values import Json

POLL_SECONDS = 0.5
"""Between looks at a suspended job whose pods are ending: that is no change we are told of."""
IDLE = timedelta(minutes=15)
"""Pods that take longer to end keep their job suspended no longer."""
PATIENCE = timedelta(seconds=120)
"""So long a suspended job waits for an estimate, or is refused its change, then it is resumed as it
is: a worker that has to import its framework first takes most of a minute on a busy node."""
ESTIMATE_SECONDS = 0.5
"""Of one look: others wait for their first step. The estimate goes on, and is asked for again."""
MOST_WAITS = 10_000
_WANTS: Mapping[Cause, frozenset[Moved]] = defaultdict(
    frozenset,
    {
        Cause.OUT_OF_MEMORY: frozenset({Moved.DEAD}),
        Cause.WRONG_CARD: frozenset({Moved.PENDING, Moved.RUNNING}),
    },
)
"""What an annotation may ask for: whoever may write the object may write that too."""


class Moves(Quiet):
    """Carries out what `deaths` and `wrong-card` want."""

    name = "moves"

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._waits: dict[str, datetime] = {}
        """UIDs of what is suspended -> when this controller first saw it so. One that takes over
        has its own patience: nobody tried while none was there."""

    def workload_changed(self, workload: Tracked, add: Add) -> None:
        """Look at *workload* if it is being moved, or its next run may be steered."""
        moving = moving_of(workload.annotations) if MOVING in workload.annotations else None
        if moving is not None and moving.step is not Step.DONE:
            left = (moving.since - self._parts.now()).total_seconds()
            add(workload.key, max(0.0, left) if moving.step is Step.WANTED else 0.0)
        elif _is_cron(workload.ref) and LEARNT in workload.annotations:
            add(workload.key, 0.0)

    async def look(self, key: str) -> Look:
        """Take the next step."""
        workload = self._parts.store.workload(key)
        if workload is None:
            return NOTHING
        obj = await self._parts.judges.read(workload.ref)
        if obj is None:
            return NOTHING
        annotations = (obj.get("metadata") or {}).get("annotations") or {}
        moving = moving_of(annotations)
        if moving is None or moving.step is Step.DONE:
            return await self._next_run(obj) if _is_cron(workload.ref) else NOTHING
        if has_ended(obj):
            return _given_up(obj, moving, "it has ended meanwhile", self._done(moving))
        if moving.step is Step.SUSPENDED:
            return await self._suspended(obj, moving)
        self._waits.pop(workload.ref.uid, None)
        return await self._wanted(obj, moving)

    async def _wanted(self, obj: Json, moving: Moving) -> Look:
        left = (moving.since - self._parts.now()).total_seconds()
        if left > 0:
            return Look(again_seconds=left)
        if is_left_alone(obj, self._parts) or is_queued(obj.get("metadata") or {}):
            return _given_up(obj, moving, "it is in other hands now", self._done(moving))
        if not _WANTS[moving.cause] & set(self._parts.settings.moves):
            return _given_up(obj, moving, "the settings want no such move", self._done(moving))
        if moving.pods:
            return self._deleted(obj, moving)
        ref = ref_of(obj)
        place = suspension(ref)
        if place is None:
            return _given_up(obj, moving, "its kind cannot be suspended", self._done(moving))
        if is_suspended(obj):
            # By somebody else, who resumes it: the duty `suspended` steers it until then.
            return _given_up(obj, moving, "somebody suspended it", self._done(moving))
        tell = Tell(
            about=ref,
            reason=Reason.MOVED,
            note=f"suspended, to be resumed on another card as soon as its pods have ended "
            f"({moving.cause.value}, move {moving.count})",
            cause=f"{moving.count} {Step.SUSPENDED}",
        )
        changes = changed({}, place, True)
        metadata = {
            "annotations": {MOVING: moving.at(Step.SUSPENDED, self._parts.now()).text()},
        }
        write = Merge(on=ref, changes={**changes, "metadata": metadata})
        return Look(acts=(Act(tell=tell, writes=(write,)),), again_seconds=POLL_SECONDS)

    async def _suspended(self, obj: Json, moving: Moving) -> Look:
        ref, now = ref_of(obj), self._parts.now()
        if len(self._waits) > MOST_WAITS:
            self._waits.clear()
        waited = now - self._waits.setdefault(ref.uid, now)
        place = suspension(ref)
        if place is None or not is_suspended(obj):
            return _given_up(obj, moving, "somebody resumed it", self._done(moving))
        if not is_idle(obj, pods_below(self._parts, obj)):
            if waited < IDLE:
                return Look(again_seconds=POLL_SECONDS)
            return self._resumed(obj, moving, place, "its pods do not end")
        if found(obj, ("status", "startTime")) is not None and ref.kind == "Job":
            # Before 1.36: the template may change once it is as if it had never started.
            return self._unstarted(obj, moving)
        try:
            taken = await self._parts.judges.take_up(
                as_new(obj, place), seconds=ESTIMATE_SECONDS, renews=True
            )
        except RequestError as error:
            return self._resumed(obj, moving, place, error.message)
        if taken.is_late:
            if waited < PATIENCE:
                return Look(again_seconds=POLL_SECONDS)
            return self._resumed(obj, moving, place, "its estimate takes too long")
        if not leads_elsewhere(taken.judgement) or not moves_pods(taken.patch):
            return self._resumed(obj, moving, place, "no other card is open to it")
        if waited > PATIENCE:
            return self._resumed(obj, moving, place, "the API server refuses the change")
        tell = Tell(
            about=ref,
            reason=Reason.MOVED,
            note=f"resumed, steered: {taken.judgement.message}".replace("\n", " "),
            cause=f"{moving.count} {Step.DONE}",
        )
        operations = (*guards(obj, place), *taken.patch, *self._ends(moving, place))
        write = Operate(on=ref, operations=operations)
        act = Act(tell=tell, writes=(write,), cause=moving.cause)
        return Look(acts=(act,), again_seconds=POLL_SECONDS)

    def _unstarted(self, obj: Json, moving: Moving) -> Look:
        ref = ref_of(obj)
        tell = Tell(
            about=ref,
            reason=Reason.MOVED,
            note="its start time is taken away, so that its pod template may change",
            cause=f"{moving.count} start",
        )
        write = Merge(on=ref, changes={"status": {"startTime": None}}, subresource="status")
        return Look(acts=(Act(tell=tell, writes=(write,)),), again_seconds=POLL_SECONDS)

    def _resumed(self, obj: Json, moving: Moving, place: Place, why: str) -> Look:
        """Return how it is resumed as it is."""
        ref = ref_of(obj)
        tell = Tell(
            about=ref,
            reason=Reason.NOT_MOVED,
            note=f"resumed as it was: {why}",
            cause=f"{moving.count}",
            is_warning=True,
        )
        operations = (*guards(obj, place), *self._ends(moving, place))
        act = Act(tell=tell, writes=(Operate(on=ref, operations=operations),))
        return Look(acts=(act,), again_seconds=POLL_SECONDS)

    def _deleted(self, obj: Json, moving: Moving) -> Look:
        """Return which pods go, and that it is done once none of them is there."""
        ref = ref_of(obj)
        pods = [
            pod
            for pod in pods_below(self._parts, obj)
            if pod.uid in moving.pods and not pod.is_going and pod.phase in ("Pending", "Running")
        ]
        tell = Tell(
            about=ref,
            reason=Reason.MOVED,
            note=f"its pods on cards that are too small are deleted ({moving.cause.value}, move "
            f"{moving.count}); those made instead are steered",
            cause=f"{moving.count} {Step.DONE}",
        )
        if pods:
            removed: tuple[Write, ...] = tuple(Remove(on=pod.ref) for pod in pods)
            return Look(acts=(Act(tell=tell, writes=removed),), again_seconds=POLL_SECONDS)
        operations = (same_version(obj), noted(self._done(moving)))
        write = Operate(on=ref, operations=operations)
        return Look(acts=(Act(tell=tell, writes=(write,), cause=moving.cause),))

    async def _next_run(self, obj: Json) -> Look:
        """Steer the template of a CronJob whose last run died: it may change at any time."""
        if is_left_alone(obj, self._parts) or is_queued(obj.get("metadata") or {}):
            return NOTHING
        if LEARNT not in ((obj.get("metadata") or {}).get("annotations") or {}):
            return NOTHING
        if self._parts.judges.steer(obj) is Steer.OFF:
            return NOTHING
        try:
            taken = await self._parts.judges.take_up(obj, seconds=ESTIMATE_SECONDS)
        except RequestError:
            return NOTHING
        if taken.is_late:
            return Look(again_seconds=5.0)
        if taken.judgement.verdict not in HELD or not moves_pods(taken.patch):
            return NOTHING
        tell = Tell(
            about=ref_of(obj),
            reason=Reason.STEERED,
            note=f"its next runs are steered: {taken.judgement.message}".replace("\n", " "),
            cause=taken.judgement.steered,
        )
        write = Operate(on=ref_of(obj), operations=(same_version(obj), *taken.patch))
        return Look(acts=(Act(tell=tell, writes=(write,)),))

    def _done(self, moving: Moving) -> Moving:
        return moving.at(Step.DONE, self._parts.now())

    def _ends(self, moving: Moving, place: Place) -> tuple[Json, ...]:
        return (
            {"op": "replace", "path": pointer(place), "value": False},
            noted(self._done(moving)),
        )


def _given_up(obj: Json, moving: Moving, why: str, done: Moving) -> Look:
    """Return that no move is under way any more."""
    tell = Tell(
        about=ref_of(obj),
        reason=Reason.NOT_MOVED,
        note=f"not moved: {why}",
        cause=f"{moving.count}",
    )
    write = Operate(on=ref_of(obj), operations=(same_version(obj), noted(done)))
    return Look(acts=(Act(tell=tell, writes=(write,)),))


def _is_cron(ref: Ref) -> bool:
    return (ref.group, ref.kind) == CRONJOB
