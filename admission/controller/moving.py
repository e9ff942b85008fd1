"""How far the move of a workload is: kept on the workload itself.

    Moving <-> `vramgate.dev/moving`

A controller that is killed leaves this; the next one goes on from here. Whoever may write the
object may write it too: it can make us do nothing that the settings do not allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

import orjson

from admission.controller.acts import Cause
from admission.controller.pods import moment

MOVING = "vramgate.dev/moving"
MAX_TEXT, MAX_COUNT, MAX_PODS = 8 << 10, 1000, 32
LONGEST_PAUSE_SECONDS = 86400.0


class Step(StrEnum):
    """What is done next."""

    WANTED = "wanted"
    """It is to be moved once its time has come."""
    SUSPENDED = "suspended"
    """We suspended it, and have to resume it."""
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """One move, the last of `count`."""

    step: Step
    cause: Cause
    since: datetime
    """When the step was reached."""
    count: int
    pods: tuple[str, ...] = ()
    """UIDs of the pods that are to go; empty: the workload is suspended, with all of them."""

    def text(self) -> str:
        """Return the annotation's value."""
        document: dict[str, object] = {
            "step": self.step.value,
            "cause": self.cause.value,
            "since": self.since.isoformat(timespec="milliseconds"),
            "count": self.count,
        }
        if self.pods:
            document["pods"] = list(self.pods)
        return orjson.dumps(document).decode()

    def at(self, step: Step, now: datetime) -> Moving:
        """Return it at *step*, reached *now*."""
        return replace(self, step=step, since=now)


def moving_of(annotations: Mapping[str, object]) -> Moving | None:
    """Return what the annotation says, None if it is not there or not ours."""
    text = annotations.get(MOVING)
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        return None
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict):
        return None
    step = next((each for each in Step if each == document.get("step")), None)
    cause = next((each for each in Cause if each == document.get("cause")), None)
    since, count, pods = (document.get(key) for key in ("since", "count", "pods"))
    at = moment(since) if isinstance(since, str) else None
    if step is None or cause is None or at is None or at.tzinfo is None:
        return None
    if type(count) is not int or not 0 < count <= MAX_COUNT:
        return None
    uids = tuple(str(each) for each in pods[:MAX_PODS]) if isinstance(pods, list) else ()
    return Moving(step=step, cause=cause, since=at, count=count, pods=uids)


def is_moving(annotations: Mapping[str, object]) -> bool:
    """Return whether a move is under way: nobody else of us touches the object meanwhile."""
    moving = moving_of(annotations)
    return moving is not None and moving.step is not Step.DONE


def wanted(
    before: Moving | None,
    *,
    cause: Cause,
    now: datetime,
    pause_seconds: float,
    settle_seconds: float,
    pods: tuple[str, ...] = (),
) -> Moving:
    """Return the next move after *before*: not sooner than its pause is over.

    The pause is doubled after each move. `since` of a wanted move is when its time comes.
    """
    due = now + timedelta(seconds=settle_seconds)
    count = 1
    if before is not None:
        count = before.count + 1
        pause = min(pause_seconds * 2.0 ** min(before.count - 1, 20), LONGEST_PAUSE_SECONDS)
        due = max(due, before.since + timedelta(seconds=pause))
    return Moving(step=Step.WANTED, cause=cause, since=due, count=count, pods=pods[:MAX_PODS])
