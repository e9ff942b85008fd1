"""Pods that wait for their estimate behind our gate are led to a card and let go.

    gated Pod -> affinity, notes and no gate, in one patch; an Event that says why

Nobody waits longer than `controller.gateSeconds`, whatever comes of the estimate. A pod that no
card holds is let go too: its controller would make a refused one again without end.
"""

from __future__ import annotations

from collections.abc import Sequence

from admission.codes import Verdict
from admission.controller.acts import NOTHING, Act, Cause, Look, Operate, Reason, Tell
from admission.controller.bounds import is_left_alone, is_own
from admission.controller.duty import Add, Quiet
from admission.controller.judging import TakenUp
from admission.controller.parts import Parts
from admission.controller.pods import PodView
from admission.controller.refs import ref_of
from admission.controller.telling import outcome, same_version
from admission.errors import RequestError
from admission.steer.gates import GATE, gates_of, is_gated
from admission.steer.permission import is_queued
from admission.steer.terms import recorded
from admission.values import Json

PATIENCE_SECONDS = 15.0
"""Of one look: others wait for it. The estimate goes on, and is asked for again."""
PAUSE_SECONDS = 1.0
RETRY_SECONDS = 30.0
"""After the API server refused what was meant to be written."""


class Estimating(Quiet):
    """Looks after the pods with the gate `vramgate.dev/estimating`."""

    name = "estimating"

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def pod_changed(self, pod: PodView, add: Add) -> None:
        """Look at *pod* if it is gated."""
        if pod.is_gated and not pod.is_going and not is_own(pod.ref.namespace, self._parts):
            add(pod.key, 0.0)

    async def look(self, key: str) -> Look:
        """Judge one pod, and let it go once that is done or its time is over."""
        pod = self._parts.store.pod(key)
        if pod is None or not pod.is_gated or pod.is_going:
            return NOTHING
        obj = await self._parts.judges.read(pod.ref)
        if obj is None or not is_gated(obj):
            return NOTHING
        if is_left_alone(obj, self._parts) or is_queued(obj["metadata"]):
            note = "nobody is steered here (mode off, a label, or a queue has the pod)"
            return _let_go(obj, Reason.NOT_ESTIMATED, note)
        left = self._left(pod)
        if left <= 0:
            seconds = f"{self._parts.settings.gate_seconds:.0f} s (controller.gateSeconds)"
            note = f"no estimate came within {seconds}: it may go to any card that is open to it"
            return _let_go(obj, Reason.NOT_ESTIMATED, note, is_warning=True)
        try:
            taken = await self._parts.judges.take_up(obj, seconds=min(left, PATIENCE_SECONDS))
        except RequestError as error:
            return _let_go(obj, Reason.NOT_ESTIMATED, error.message, is_warning=True)
        if taken.is_late:
            return Look(again_seconds=min(PAUSE_SECONDS, left))
        return self._judged(obj, taken, left=left)

    def _left(self, pod: PodView) -> float:
        """Return the seconds that *pod* may wait still."""
        created = pod.created
        if created is None:
            return 0.0
        waited = (self._parts.now() - created).total_seconds()
        return self._parts.settings.gate_seconds - waited

    def _judged(self, obj: Json, taken: TakenUp, *, left: float) -> Look:
        judgement = taken.judgement
        said = outcome(judgement)
        note = said.note
        if judgement.verdict is Verdict.OOM:
            note += f" {_why_let_go(obj)}"
        # Terms of an earlier time may not be changed any more, nor do they need to be.
        patch = () if recorded(obj["metadata"]) else taken.patch
        look = _let_go(
            obj,
            said.reason,
            note,
            is_warning=said.is_warning,
            patch=patch,
            cause=Cause.ESTIMATING if judgement.steered and patch else None,
        )
        # If the API server refuses the patch, the gate alone is taken off when its time is over.
        return Look(acts=look.acts, again_seconds=max(left, 0.0) + PAUSE_SECONDS)


def _let_go(
    obj: Json,
    reason: Reason,
    note: str,
    *,
    is_warning: bool = False,
    patch: Sequence[Json] = (),
    cause: Cause | None = None,
) -> Look:
    """Return what takes the gate off *obj*, with *patch* in the same request."""
    place = f"/spec/schedulingGates/{gates_of(obj).index(GATE)}"
    operations = (
        same_version(obj),
        *patch,
        {"op": "test", "path": f"{place}/name", "value": GATE},
        {"op": "remove", "path": place},
    )
    tell = Tell(
        about=ref_of(obj),
        reason=reason,
        note=f"{note.rstrip('.')}. The gate {GATE} is taken off.",
        is_warning=is_warning,
    )
    write = Operate(on=ref_of(obj), operations=operations)
    return Look(acts=(Act(tell=tell, writes=(write,), cause=cause),), again_seconds=RETRY_SECONDS)


def _why_let_go(obj: Json) -> str:
    owners = obj["metadata"].get("ownerReferences") or ()
    kind = next((owner.get("kind") for owner in owners if owner.get("controller") is True), None)
    if kind is None:
        return "It was admitted already, so it is let go."
    return f"It is let go all the same: pods of a controller ({kind}) are never denied."
