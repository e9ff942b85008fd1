"""Suspended workloads are steered while that is allowed; when they start is up to others.

    suspended object, cards -> its pod templates steered

Nothing is suspended and nothing resumed here. Written only where the terms in the object are not
those that the cards ask for now: asked again after that, there is nothing to do.
"""

from __future__ import annotations

from admission.controller.acts import NOTHING, Act, Cause, Look, Operate, Reason, Tell
from admission.controller.bounds import is_left_alone, is_own
from admission.controller.duty import Add, Quiet
from admission.controller.moving import is_moving
from admission.controller.parts import Parts
from admission.controller.refs import ref_of
from admission.controller.telling import moves_pods, outcome, same_version
from admission.controller.tracked import Tracked
from admission.errors import RequestError
from admission.steer.permission import is_queued, is_suspended
from admission.steer.plan import HELD

PATIENCE_SECONDS = 15.0
"""Of one look: others wait for it. The estimate goes on, and is asked for again."""
PAUSE_SECONDS = 5.0


class Suspended(Quiet):
    """Looks after workloads that somebody suspended, and no queue."""

    name = "suspended"

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def workload_changed(self, workload: Tracked, add: Add) -> None:
        """Look at *workload* if it is held."""
        if self._is_held(workload):
            add(workload.key, 0.0)

    def classes_changed(self, add: Add) -> None:
        """Look at all that are held: a card came or went."""
        for workload in self._parts.store.workloads():
            if self._is_held(workload):
                add(workload.key, 0.0)

    async def look(self, key: str) -> Look:
        """Steer one workload, if it may be and its terms are not as they should be."""
        workload = self._parts.store.workload(key)
        if workload is None or not self._is_held(workload):
            return NOTHING
        obj = await self._parts.judges.read(workload.ref)
        if obj is None or is_left_alone(obj, self._parts):
            return NOTHING
        if not is_suspended(obj) or is_queued(obj["metadata"]):
            return NOTHING
        try:
            taken = await self._parts.judges.take_up(obj, seconds=PATIENCE_SECONDS, renews=True)
        except RequestError:
            return NOTHING
        if taken.is_late:
            return Look(again_seconds=PAUSE_SECONDS)
        # What no card holds, or nothing is known of, keeps the terms that it has.
        if taken.judgement.verdict not in HELD or not moves_pods(taken.patch):
            return NOTHING
        ref, generation = ref_of(obj), obj["metadata"].get("generation")
        said = outcome(taken.judgement)
        steered = taken.judgement.steered
        what = "Steered" if steered else "Any card does, so it is steered no more"
        tell = Tell(
            about=ref,
            reason=Reason.STEERED,
            note=f"{what}: {said.note} It starts when whoever suspended it resumes it.",
            cause=f"{generation} {steered}",
        )
        write = Operate(on=ref, operations=(same_version(obj), *taken.patch))
        return Look(acts=(Act(tell=tell, writes=(write,), cause=Cause.SUSPENDED),))

    def _is_held(self, workload: Tracked) -> bool:
        return (
            workload.suspended
            # What we suspended ourselves to move it is steered by the move.
            and not is_moving(workload.annotations)
            and not (workload.ended or workload.queue or workload.owner)
            and not is_own(workload.ref.namespace, self._parts)
        )
