"""High-water marks: the most that each container ever held of each card.

    pods, what containers hold now -> marks; marks -> what is to be written on which pod

A mark is for the life of the pod: it outlives restarts of the container, and by its annotation
those of the agent. Pure: the clock is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from admission import peaks as annotation
from admission.agent.pods import Owner, Pod, Pods
from admission.peaks import Key, Peaks

LINGER_SECONDS = 600.0
"""How long the marks of a pod that has ended are kept: some scrapes, and time to write them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is to be written on a pod."""

    pod: Pod
    peaks: Peaks


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How far the estimate of a pod was from what it took, when it ended."""

    ended: str
    ratio: float
    """Measured ÷ estimated: the most that any of its containers held of a card."""


@dataclass(slots=True)
class _Mark:
    """What is known of one pod that holds, or held, memory of a card."""

    pod: Pod
    peaks: dict[Key, int] = field(default_factory=dict)
    written: dict[Key, int] = field(default_factory=dict)
    """What its annotation says, as far as we know."""
    tried: float = -math.inf
    """When it was last written, or tried to."""
    is_held: bool = False
    """Whether a container of it holds memory now."""
    was_let_go: bool = False
    """Whether none does any more, and that was not written yet: a container may have died."""
    ended: float | None = None


class Marks:
    """Every mark of this node. For one thread."""

    def __init__(self, *, growth: float, seconds: float) -> None:
        self._growth = growth
        self._seconds = seconds
        self._marks: dict[str, _Mark] = {}
        """By the pod's UID."""

    def follow(self, pods: Pods, *, now: float, totals: Mapping[str, int]) -> Iterator[Ending]:
        """Take up the pods there are; yield those that have ended since the last time.

        Marks of pods that are gone are dropped. One that is new to us brings the marks that its
        annotation says, as far as there is such a card (*totals*) of such a size.
        """
        for uid in [uid for uid, mark in self._marks.items() if _is_over(mark, pods, now)]:
            del self._marks[uid]
        for uid, pod in pods.by_uid.items():
            mark = self._marks.get(uid)
            if mark is None:
                if pod.peaks and pod.ended is None:
                    self._restore(pod, totals)
                continue
            mark.pod = pod
            if pod.ended is not None and mark.ended is None:
                mark.ended = now
                yield from _endings(mark)

    def hold(self, held: Mapping[tuple[Owner, str], int], pods: Pods) -> None:
        """Raise the marks to what containers hold now, by owner and card."""
        for (owner, gpu), nbytes in held.items():
            pod = pods.by_uid.get(owner.uid)
            if pod is None:
                continue
            mark = self._marks.get(owner.uid)
            if mark is None:
                mark = self._marks[owner.uid] = _Mark(pod=pod)
            key = (owner.container, gpu)
            mark.peaks[key] = max(nbytes, mark.peaks.get(key, 0))
        holding = {owner.uid for owner, _ in held}
        for uid, mark in self._marks.items():
            mark.was_let_go |= mark.is_held and uid not in holding
            mark.is_held = uid in holding

    def due(self, now: float) -> Iterator[Note]:
        """Yield what is to be written now.

        That is a first mark, one that has grown and was not written for a while, one that has grown
        of containers that have let go of every card, and whatever was not written of a pod that
        has ended.
        """
        yield from self._notes(lambda mark: self._is_due(mark, now), now)

    def unwritten(self, now: float) -> Iterator[Note]:
        """Yield everything that was not written, as the agent ends."""
        yield from self._notes(lambda mark: mark.peaks != mark.written, now)

    def note_written(self, note: Note) -> None:
        """Remember that *note* is on the pod."""
        if (mark := self._marks.get(note.pod.uid)) is not None:
            mark.written = dict(note.peaks)

    def rows(self) -> tuple[tuple[Pod, Peaks], ...]:
        """Return every pod and its marks as they are now."""
        return tuple((mark.pod, dict(mark.peaks)) for mark in self._marks.values())

    def _notes(self, chosen: Callable[[_Mark], bool], now: float) -> Iterator[Note]:
        for mark in self._marks.values():
            if chosen(mark):
                mark.tried, mark.was_let_go = now, False
                yield Note(pod=mark.pod, peaks=dict(mark.peaks))

    def _is_due(self, mark: _Mark, now: float) -> bool:
        if mark.peaks == mark.written:
            return False
        if mark.ended is not None and mark.tried < mark.ended:
            return True
        is_quiet = now >= mark.tried + self._seconds
        if mark.ended is not None:
            return is_quiet
        return (is_quiet or mark.was_let_go) and self._has_grown(mark)

    def _has_grown(self, mark: _Mark) -> bool:
        least = 1 + self._growth
        return any(nbytes > least * mark.written.get(key, 0) for key, nbytes in mark.peaks.items())

    def _restore(self, pod: Pod, totals: Mapping[str, int]) -> None:
        found = {
            key: nbytes
            for key, nbytes in annotation.read(pod.peaks).items()
            if nbytes <= totals.get(key[1], 0)
        }
        if found:
            self._marks[pod.uid] = _Mark(pod=pod, peaks=dict(found), written=dict(found))


def _is_over(mark: _Mark, pods: Pods, now: float) -> bool:
    """Return whether the pod of *mark* is gone, or ended long ago."""
    if mark.pod.uid not in pods.by_uid:
        return True
    return mark.ended is not None and now >= mark.ended + LINGER_SECONDS


def _endings(mark: _Mark) -> Iterator[Ending]:
    """Yield how far the estimate was, where there is one."""
    if mark.pod.ended and mark.pod.estimate and mark.peaks:
        measured = max(mark.peaks.values())
        yield Ending(ended=mark.pod.ended, ratio=measured / mark.pod.estimate)
