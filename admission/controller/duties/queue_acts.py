"""What the queue's duty has written, and what it says with it.

Decision about a Workload -> Look
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

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
from admission.controller.kueue.checks import Check, activation, answers
from admission.controller.kueue.deciding import Decision, Step
from admission.controller.kueue.workloads import (
    PENDING,
    READY,
    REJECTED,
    RETRY,
    Queued,
    Waiting,
)
from admission.controller.refs import ref_of
from admission.learning.lesson import RETRY as DIED
from admission.steer.operations import operations
from admission.steer.permission import is_suspended
from admission.values import Json
from admission.workloads.fields import part

PAUSE_SECONDS = 1.0
RETRY_SECONDS = 30.0
"""After something was written, or refused: as a rule the object has changed long before."""


def activated(check: Check, *, now: datetime) -> Look:
    """Return what lets queues ask *check*."""
    tell = Tell(
        about=check.ref,
        reason=Reason.CHECK_ACTIVE,
        note="Jobs of queues with this check are admitted to flavors whose cards hold them.",
        cause=str(check.generation),
    )
    write = Merge(on=check.ref, changes=activation(check, now=now), subresource="status")
    return Look(acts=(Act(tell=tell, writes=(write,)),), again_seconds=RETRY_SECONDS)


def answered(
    queued: Queued,
    waiting: Waiting,
    decision: Decision,
    names: frozenset[str],
    *,
    now: datetime,
    reason: Reason = Reason.CHECKED,
) -> Look:
    """Return what sets the checks of *names* to the answer *decision*."""
    is_rejected = decision.step is Step.REJECT
    patch = answers(
        waiting,
        names,
        before=PENDING,
        state=REJECTED if is_rejected else READY,
        message=decision.message,
        now=now,
    )
    tell = Tell(
        about=queued.owner or queued.ref,
        reason=Reason.TOO_LARGE if decision.is_too_large else reason,
        note=f"{'Rejected' if is_rejected else 'Ready'}: {decision.message}",
        cause=f"{queued.ref.uid} {queued.reserved}",
        is_warning=decision.is_warning or is_rejected,
    )
    return _written(queued, tell, patch)


def requeued(
    queued: Queued,
    waiting: Waiting,
    job: Json,
    decision: Decision,
    names: frozenset[str],
    *,
    now: datetime,
    seconds: int,
) -> Look:
    """Return what sends *job*, which died on its flavor, back to its queue for *seconds*."""
    message = f"{decision.message} It comes back in {seconds} s."
    patch = answers(
        waiting,
        names,
        before=READY,
        state=RETRY,
        message=message,
        now=now,
        requeue_seconds=seconds,
    )
    tell = Tell(
        about=ref_of(job),
        reason=Reason.REQUEUED,
        note=f"Back to its queue: {message}",
        cause=f"{queued.ref.uid} {queued.reserved} {job['metadata']['annotations'][DIED]}",
        is_warning=True,
    )
    return _written(queued, tell, patch)


def moved(queued: Queued, job: Json, decision: Decision, *, left: float) -> Look:
    """Return what leads *job* to another flavor, and has Kueue make its Workload anew.

    Whoever is killed between the two goes on with the second: the job says that it was led.
    """
    if not is_suspended(job):
        return Look(again_seconds=PAUSE_SECONDS)  # Kueue has yet to stop it
    ref = ref_of(job)
    writes: tuple[Write, ...] = (Remove(on=queued.ref),)
    if patch := operations(job, decision.job):
        suspended: dict[str, Any] = {"op": "test", "path": _suspend_path(job), "value": True}
        writes = (Operate(on=ref, operations=(suspended, *patch)), *writes)
    tell = Tell(
        about=ref,
        reason=Reason.MOVED,
        note=f"Led to flavor {' or '.join(decision.flavors)}: {decision.message}",
        cause=queued.ref.uid,
    )
    act = Act(tell=tell, writes=writes, cause=Cause.QUEUE)
    return Look(acts=(act,), again_seconds=min(max(left, PAUSE_SECONDS), RETRY_SECONDS))


def _written(queued: Queued, tell: Tell, patch: tuple[Json, ...]) -> Look:
    if not patch:
        return NOTHING
    write = Operate(on=queued.ref, operations=patch, subresource="status")
    return Look(acts=(Act(tell=tell, writes=(write,)),), again_seconds=RETRY_SECONDS)


def _suspend_path(job: Json) -> str:
    spec = part(job.get("spec"))
    return "/spec/suspend" if spec.get("suspend") is True else "/spec/runPolicy/suspend"
