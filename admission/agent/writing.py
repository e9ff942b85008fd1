"""Write peaks on pods, beside the looks: an API server that is slow delays none.

notes -> patches by the pod's UID; what became of them -> problems, counts

A thread of its own, one write at a time.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from http import HTTPStatus

from admission.agent.marks import Note
from admission.agent.problems import AgentProblem, Found
from admission.errors import ClusterError
from admission.objects import CONFLICT, NOT_FOUND, Objects
from admission.peaks import ANNOTATION, written

FORGET_SECONDS = 180.0
"""A write that failed is tried again after a minute; if it is not, its pod is gone."""

_FORBIDDEN = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class Written(StrEnum):
    """What became of a write: labels of `vramgate_agent_annotations_total`."""

    DONE = "done"
    GONE = "gone"
    """The pod is not there any more, or another has its name."""
    FAILED = "failed"


class Writer:
    """Writes what it is given, the newest of each pod."""

    def __init__(
        self,
        objects: Objects,
        *,
        tell: Callable[[Written], None] = lambda _: None,
        is_there: Callable[[str], bool] = lambda _: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._objects = objects
        self._tell = tell
        self._is_there = is_there
        """Whether there is still a pod of that UID, as far as is known."""
        self._clock = clock
        self._waiting: OrderedDict[str, Note] = OrderedDict()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="writing", daemon=True)
        self._done: deque[Note] = deque()
        self._failed: tuple[float, Found] = (-math.inf, {})

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    def give(self, notes: Iterable[Note]) -> None:
        """Write *notes* soon; one that waits for the same pod is replaced."""
        with self._changed:
            for note in notes:
                self._waiting[note.pod.uid] = note
            self._changed.notify()

    def done(self) -> Iterator[Note]:
        """Yield what was written since the last time."""
        while self._done:
            yield self._done.popleft()

    def problems(self) -> Found:
        """Return what keeps it from writing; nothing once it was not so for a while."""
        failed, found = self._failed
        return found if self._clock() < failed + FORGET_SECONDS else {}

    def stop(self, seconds: float) -> None:
        """Write what waits, for at most *seconds*."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while (note := self._next()) is not None:
            outcome = self._write(note)
            if outcome is Written.DONE:
                self._done.append(note)
            self._tell(outcome)

    def _next(self) -> Note | None:
        """Wait for what is to be written; None at the end."""
        with self._changed:
            while not self._waiting:
                if self._stopping:
                    return None
                self._changed.wait()
            return self._waiting.popitem(last=False)[1]

    def _write(self, note: Note) -> Written:
        """Write one note on the very pod: of the same name there may be another by now."""
        pod = note.pod
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        annotations = {ANNOTATION: written(note.peaks)}
        try:
            self._objects.patch(path, {"metadata": {"uid": pod.uid, "annotations": annotations}})
        except ClusterError as error:
            # Of another UID under the name the API server says 422, as of much else.
            if error.status in (NOT_FOUND, CONFLICT) or not self._is_there(pod.uid):
                return Written.GONE
            problem = AgentProblem.ANNOTATION_REFUSED
            if error.status in _FORBIDDEN:
                problem = AgentProblem.ANNOTATION_FORBIDDEN
            reason = f"pod {pod.namespace}/{pod.name}: {error}"
            self._failed = (self._clock(), {problem: reason})
            return Written.FAILED
        self._failed = (-math.inf, {})
        return Written.DONE
