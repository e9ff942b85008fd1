"""Carry out what a duty wants: the Event, then the writes.

    Act -> API calls -> Outcome

Every write names the UID it is meant for. What is refused is logged and told by a metric; the rest
of the act is left, and the duty looks again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum

import structlog

from admission.controller.acts import (
    MAX_NOTE,
    Act,
    Cause,
    Died,
    Learn,
    Merge,
    Misplaced,
    Operate,
    Remember,
    Remove,
    Tell,
    Write,
)
from admission.controller.refs import Discovery
from admission.errors import ClusterError
from admission.learning.deaths import Death
from admission.learning.measured import Measured
from admission.objects import CONFLICT, NOT_FOUND, WritableObjects
from admission.plaintext import plain
from admission.values import Json

COMPONENT = "vramgate-controller"
UNPROCESSABLE, TOO_MANY = 422, 429
MOST_SAID = 20_000
"""Events that are known to be there: they are not sent again only to be refused."""
_log = structlog.get_logger()


class Outcome(StrEnum):
    """What became of an act: labels of `vramgate_controller_acts_total`."""

    DONE = "done"
    GONE = "gone"
    """The object is not there any more, or another has its name."""
    AGAIN = "again"
    """It changed meanwhile, or nobody answers: worth another look soon."""
    REFUSED = "refused"
    """By a role, another webhook or the kind's own rules: another try would be refused too."""


class Acting:
    """Does what it is told; in any thread."""

    def __init__(
        self,
        objects: WritableObjects,
        discovery: Discovery,
        *,
        moved: Callable[[Cause], None] = lambda _: None,
        told: Callable[[Died | Misplaced], None] = lambda _: None,
        learn: Callable[[Death], None] = lambda _: None,
        remember: Callable[[Measured], None] = lambda _: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._objects = objects
        self._discovery = discovery
        self._moved = moved
        self._told = told
        self._learn = learn
        self._remember = remember
        self._now = now
        self._said: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = threading.Lock()

    def act(self, act: Act) -> Outcome:
        """Tell and write *act*."""
        outcome = self._done(lambda: self._tell(act.tell), act)
        for write in act.writes:
            if outcome is not Outcome.DONE:
                return outcome
            outcome = self._done(lambda write=write: self._write(write), act)  # type: ignore[misc]
        if outcome is Outcome.DONE:
            _log.info("acted", **_logged(act), writes=len(act.writes))
            if act.cause is not None:
                self._moved(act.cause)
        return outcome

    def _done(self, do: Callable[[], None], act: Act) -> Outcome:
        try:
            do()
        except ClusterError as error:
            outcome = outcome_of(error)
            _log.warning("act failed", **_logged(act), outcome=outcome.value, said=str(error))
            return outcome
        return Outcome.DONE

    def _tell(self, tell: Tell) -> None:
        namespace = tell.about.namespace or "default"
        path = f"/api/v1/namespaces/{namespace}/events"
        with self._lock:
            if (namespace, tell.name) in self._said:
                return
        try:
            self._objects.create(path, event_of(tell, now=self._now()))
            if tell.counts is not None:
                self._told(tell.counts)
        except ClusterError as error:
            # It was told before: by us, or by whoever was at work before us. In a namespace that
            # is going nothing new can be made, and nobody reads it either.
            if error.status != CONFLICT:
                raise
        with self._lock:
            self._said[namespace, tell.name] = None
            if len(self._said) > MOST_SAID:
                self._said.popitem(last=False)

    def _write(self, write: Write) -> None:
        if isinstance(write, Learn):
            self._learn(write.death)
            return
        if isinstance(write, Remember):
            self._remember(write.measured)
            return
        path = self._discovery.path(write.on)
        match write:
            case Operate():
                test = {"op": "test", "path": "/metadata/uid", "value": write.on.uid}
                place = f"{path}/{write.subresource}" if write.subresource else path
                self._objects.operate(place, (test, *write.operations))
            case Merge():
                changes = dict(write.changes)
                metadata = changes.get("metadata") or {}
                changes["metadata"] = {**metadata, "uid": write.on.uid}
                place = f"{path}/{write.subresource}" if write.subresource else path
                self._objects.merge(place, changes)
            case Remove():
                self._objects.delete(path, uid=write.on.uid)


def outcome_of(error: ClusterError) -> Outcome:
    """Return what *error* means for another try.

    A JSON Patch whose test fails is 422, as is what a kind's own rules refuse: the duty looks
    again, and sees which it was. Another UID under the name is 409 or 422.
    """
    status = error.status
    if status == NOT_FOUND:
        return Outcome.GONE
    if status is None or status in (CONFLICT, TOO_MANY) or status >= 500:
        return Outcome.AGAIN
    return Outcome.REFUSED


def event_of(tell: Tell, *, now: datetime) -> Json:
    """Return *tell* as an Event of the core API."""
    at = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = tell.about
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": tell.name, "namespace": about.namespace or "default"},
        "involvedObject": {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        },
        "reason": tell.reason.value,
        "message": plain(tell.note, limit=MAX_NOTE),
        "type": "Warning" if tell.is_warning else "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": "vramgate.dev/controller",
        "reportingInstance": COMPONENT,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def _logged(act: Act) -> dict[str, str]:
    about = act.tell.about
    return {
        "reason": act.tell.reason.value,
        "kind": about.kind,
        "namespace": about.namespace,
        "name": about.name,
        "uid": about.uid,
    }
