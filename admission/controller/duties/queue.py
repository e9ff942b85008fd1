"""Jobs in a Kueue queue: our AdmissionCheck is answered, by the cards behind their flavors.

    Workload with quota and a Pending check of ours -> Ready, Rejected, or another flavor

Where Kueue is not installed nothing is followed and nothing asked. What is written: the condition
Active of our AdmissionChecks, the state of our checks on Workloads, terms on suspended jobs; and a
Workload that was made before such terms is deleted, for Kueue to make it anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from admission.codes import Steer
from admission.controller.acts import NOTHING, Look, Reason
from admission.controller.bounds import is_left_alone
from admission.controller.duties.queue_acts import (
    PAUSE_SECONDS,
    activated,
    answered,
    moved,
    requeued,
)
from admission.controller.duty import Add, Follow, Quiet
from admission.controller.kueue.deciding import Decision, Leave, Step, decide
from admission.controller.kueue.known import (
    Known,
    cut_check,
    cut_flavor,
    cut_queue,
    cut_workload,
)
from admission.controller.kueue.moving import moves_of, unled
from admission.controller.kueue.placing import Scene
from admission.controller.kueue.templates import open_to, released
from admission.controller.kueue.workloads import (
    VERSIONS,
    Queued,
    Waiting,
    queued_of,
    waiting_of,
)
from admission.controller.parts import Parts
from admission.controller.tracked import Tracked
from admission.controller_settings import Moved
from admission.errors import ClusterError, RequestError
from admission.inventory import steer_label
from admission.learning.floors import Learnt
from admission.learning.lesson import RETRY as DIED
from admission.steer.writing import unsteered
from admission.values import Json

PATIENCE_SECONDS = 15.0
"""Of one look: others wait for it. The estimate goes on, and is asked for again."""
_CHECK, _WORKLOAD = "check ", "workload "


class Queue(Quiet):
    """Answers the AdmissionChecks of `vramgate.dev/gpu-memory`."""

    name = "queue"

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known = Known()

    @property
    def follows(self) -> tuple[Follow, ...]:
        """Return Kueue's kinds."""
        return tuple(
            Follow(versions=VERSIONS, kind=kind, cut=cut, take=take)
            for kind, cut, take in (
                ("AdmissionCheck", cut_check, self._checks_changed),
                ("ClusterQueue", cut_queue, self._queues_changed),
                ("ResourceFlavor", cut_flavor, self._flavors_changed),
                ("Workload", cut_workload, self._workloads_changed),
            )
        )

    def _checks_changed(self, changes: Mapping[str, Json | None], add: Add) -> None:
        self._known.take_checks(changes)
        for name, item in changes.items():
            if item is not None:
                add(f"{_CHECK}{name}", 0.0)
        self._add_asked(add)

    def _queues_changed(self, changes: Mapping[str, Json | None], add: Add) -> None:
        self._known.take_queues(changes)
        self._add_asked(add)

    def _flavors_changed(self, changes: Mapping[str, Json | None], add: Add) -> None:
        self._known.take_flavors(changes)
        self._add_asked(add)

    def _workloads_changed(self, changes: Mapping[str, Json | None], add: Add) -> None:
        self._known.take_workloads(changes)
        for key in changes:
            queued = self._known.workloads.get(key)
            if queued is not None and (self._known.is_asked(queued) or self._has_died(queued)):
                add(f"{_WORKLOAD}{key}", 0.0)

    def _has_died(self, queued: Queued) -> bool:
        """Return whether a pod of an admitted job died by lack of GPU memory, as the job says."""
        if queued.owner is None or not self._known.is_passed(queued):
            return False
        job = self._parts.store.workload_of_uid(queued.owner.uid)
        return job is not None and not job.ended and DIED in job.annotations

    def _add_asked(self, add: Add) -> None:
        for queued in self._known.asked():
            add(f"{_WORKLOAD}{queued.key}", 0.0)

    def workload_changed(self, workload: Tracked, add: Add) -> None:
        """Look at the Workload of a job that died by lack of GPU memory."""
        if workload.queue is None or DIED not in workload.annotations:
            return
        queued = self._known.workload_of(workload.ref.uid)
        if queued is not None and self._has_died(queued):
            add(f"{_WORKLOAD}{queued.key}", 0.0)

    async def look(self, key: str) -> Look:
        """Answer for one Workload, or say of a check of ours that it is answered."""
        if key.startswith(_CHECK):
            check = self._known.checks.get(key.removeprefix(_CHECK))
            if check is None or check.is_active:
                return NOTHING
            return activated(check, now=self._parts.now())
        queued = self._known.workloads.get(key.removeprefix(_WORKLOAD))
        if queued is None:
            return NOTHING
        if not self._known.is_asked(queued) and not self._known.is_passed(queued):
            return NOTHING
        found = await self._parts.judges.read(queued.ref)
        if found is None:
            return NOTHING
        queued = queued_of(found, api_version=queued.ref.api_version)
        waiting = waiting_of(found, queued)
        if self._known.is_asked(queued):
            return await self._asked(queued, waiting)
        if self._known.is_passed(queued):
            return await self._passed(queued, waiting)
        return NOTHING

    async def _asked(self, queued: Queued, waiting: Waiting) -> Look:
        """Answer for a Workload that waits."""
        left = self._left(waiting)
        try:
            job = None if queued.owner is None else await self._parts.judges.read(queued.owner)
        except ClusterError as error:
            if error.status != 403:
                raise
            text = f"not judged: the controller may not read {queued.owner.said}"  # type: ignore[union-attr]
            return self._answered(queued, waiting, _passing(text, is_warning=True))
        if job is None:
            if queued.owner is not None:
                return NOTHING  # it is going, and its Workload with it
            text = "not judged: it belongs to no one job (a group of pods is not read)"
            return self._answered(queued, waiting, _passing(text))
        decision = await self._decided(job, waiting, left=left)
        if decision is None or (decision.step is Step.WAIT and left > 0):
            return Look(again_seconds=PAUSE_SECONDS)
        if decision.step is Step.WAIT:
            seconds = f"{self._parts.settings.gate_seconds:.0f} s (controller.gateSeconds)"
            text = f"admitted unjudged: no estimate came within {seconds}. {decision.message}"
            passing = _passing(text, is_warning=True)
            return self._answered(queued, waiting, passing, reason=Reason.NOT_ESTIMATED)
        if decision.step is Step.MOVE:
            if left > 0:
                return moved(queued, job, decision, left=left)
            text = f"{decision.message} It could not be moved in time."
            return self._answered(queued, waiting, _passing(text, is_warning=True))
        return self._answered(queued, waiting, decision)

    async def _passed(self, queued: Queued, waiting: Waiting) -> Look:
        """Send a job that died on its flavor back to its queue, if another one would hold it."""
        settings = self._parts.settings
        if Moved.DEAD not in settings.moves or queued.owner is None:
            return NOTHING
        if not self._has_died(queued):
            return NOTHING
        job = await self._parts.judges.read(queued.owner)
        if job is None or DIED not in (job["metadata"].get("annotations") or {}):
            return NOTHING
        if any(_retries(each) >= settings.most_moves for each in waiting.checks):
            return NOTHING  # it went back as often, and nothing came of it
        free = released(job, waiting, self._known.flavors)
        decision = await self._decided(free, waiting, left=0.0)
        if decision is None or decision.step is not Step.MOVE:
            return NOTHING
        # Never at once: Kueue would be asked to admit it again before it is stopped.
        seconds = max(1, round(settings.move_pause_seconds * 2.0 ** moves_of(job)))
        names, now = self._known.names, self._parts.now()
        return requeued(queued, waiting, job, decision, names, now=now, seconds=seconds)

    async def _decided(self, job: Json, waiting: Waiting, *, left: float) -> Decision | None:
        """Return what to do about *job*; None while its queue or flavors are not known."""
        known, parts = self._known, self._parts
        if is_left_alone(job, parts):
            return _passing("not judged here: mode off, a label, or a namespace of the cluster's")
        queue = known.queues.get(waiting.cluster_queue)
        if queue is None:
            text = f"not judged: its queue {waiting.cluster_queue or '?'} could not be read"
            return _passing(text, is_warning=True) if left <= 0 else None
        without = unled(job)
        bare = open_to(unsteered(without), known.flavors.values())
        seconds = min(max(left, PAUSE_SECONDS), PATIENCE_SECONDS)
        try:
            judgement = await parts.judges.judged(bare, seconds=seconds)
            policy = parts.judges.policy(job)
            job_units = judgement.workload.units
            floors = zip(job_units, Learnt().floors(judgement.workload), strict=True)
            scene = Scene(
                obj=job,
                unled=without,
                waiting=waiting,
                queue=queue,
                flavors=dict(known.flavors),
                classes=parts.inventory.classes,
                floors={unit.container_path: floor for unit, floor in floors if floor},
            )
            # Of thousands of nodes it takes a tenth of a second.
            return await asyncio.to_thread(decide, scene, judgement, policy, self._leave(job))
        except RequestError as error:
            return _passing(f"not judged: {error.message}", is_warning=True)

    def _leave(self, job: Json) -> Leave:
        """Return whether *job* may be moved once more."""
        settings = self._parts.settings
        metadata = job["metadata"]
        steer = steer_label(metadata) or self._parts.inventory.steer_of(metadata["namespace"])
        if steer is Steer.OFF:
            return Leave(may_move=False, because="its label vramgate.dev/steer is off")
        moves = moves_of(job)
        if moves >= settings.most_moves:
            text = f"it was moved {moves} times (controller.mostMoves)"
            return Leave(may_move=False, because=text)
        return Leave(may_move=True)

    def _left(self, waiting: Waiting) -> float:
        """Return the seconds that may be taken for an answer still."""
        if waiting.reserved is None:
            return 0.0
        waited = (self._parts.now() - waiting.reserved).total_seconds()
        return self._parts.settings.gate_seconds - waited

    def _answered(
        self,
        queued: Queued,
        waiting: Waiting,
        decision: Decision,
        *,
        reason: Reason = Reason.CHECKED,
    ) -> Look:
        names, now = self._known.names, self._parts.now()
        return answered(queued, waiting, decision, names, now=now, reason=reason)


def _retries(check: Json) -> int:
    """Return how often Kueue has taken the Workload back at the word of *check*."""
    count = check.get("retryCount")
    return count if isinstance(count, int) else 0


def _passing(message: str, *, is_warning: bool = False) -> Decision:
    return Decision(step=Step.PASS, message=message, is_warning=is_warning)
