"""One look after another at what containers hold of this node's cards.

backends, pods, /proc -> marks, and a View that others may read

For one thread, but for `pods`, which another replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from admission.agent.cgroup import containers_of
from admission.agent.marks import Ending, Marks
from admission.agent.pods import Owner, Pod, Pods
from admission.agent.problems import AgentProblem, Found
from admission.agent.reading import Backend, Card, Reading, Use, joined
from admission.peaks import Peaks

LIST_SECONDS = 10.0
"""How long the first list of pods may take before it is a problem."""
LOOKS_MISSING = 5
"""In a row without any process of those that the driver names: they do not merely end."""
HOST_PIDS = 0xEFFFFFFC
"""The inode of the first process namespace. Source: Linux `include/linux/proc_ns.h`,
PROC_PID_INIT_INO."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What was seen last."""

    cards: tuple[Card, ...] = ()
    marks: tuple[tuple[Pod, Peaks], ...] = ()
    unattributed: int = 0
    """Bytes that processes hold of which no container of this node's pods is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look came to."""

    problems: Found
    endings: tuple[Ending, ...]


@dataclass(slots=True)
class _Held:
    """Whose memory it is, summed over processes."""

    by_owner: dict[tuple[Owner, str], int] = field(default_factory=dict)
    nobodys: int = 0
    num_processes: int = 0
    num_missing: int = 0
    """Processes that the driver names and the kernel does not."""


class Sampler:
    """Looks at the cards and keeps the marks."""

    def __init__(
        self,
        backends: Sequence[Backend],
        marks: Marks,
        *,
        pods: Callable[[], Pods | None],
        proc: Path,
    ) -> None:
        self._backends = tuple(backends)
        self._marks = marks
        self._pods = pods
        self._proc = proc
        self._totals: dict[str, int] = {}
        """Of every card that was ever seen: one that is lost still has its marks."""
        self._num_missing_looks = 0
        self._began: float | None = None
        """The time of the first look."""
        self.view = View()
        """Replaced by every look, never changed."""

    def look(self, now: float) -> Look:
        """Look once."""
        reading = joined(backend.read() for backend in self._backends)
        problems = dict(reading.problems)
        self._totals |= {card.gpu: card.total for card in reading.cards}
        pods = self._pods()
        endings: tuple[Ending, ...] = ()
        held = _Held()
        self._began = now if self._began is None else self._began
        if pods is None and now >= self._began + LIST_SECONDS:
            problems[AgentProblem.PODS_UNKNOWN] = "the pods of this node are not listed yet"
        if pods is not None:
            endings = tuple(self._marks.follow(pods, now=now, totals=self._totals))
            held = self._held(reading, pods)
            self._marks.hold(held.by_owner, pods)
        if self._are_other_pids(held):
            reason = f"none of {held.num_processes} processes is here: hostPID is needed"
            problems[AgentProblem.OTHER_PIDS] = reason
        self.view = View(cards=reading.cards, marks=self._marks.rows(), unattributed=held.nobodys)
        return Look(problems=problems, endings=endings)

    def close(self) -> None:
        """Let go of the cards."""
        for backend in self._backends:
            backend.close()

    def _held(self, reading: Reading, pods: Pods) -> _Held:
        held = _Held()
        owners: dict[int, Owner | None] = {}
        for use in reading.uses:
            if use.pid not in owners:
                owners[use.pid] = self._owner(use, pods, held)
            owner, nbytes = owners[use.pid], use.nbytes or 0
            if owner is None:
                held.nobodys += nbytes
            elif nbytes:
                key = (owner, use.gpu)
                held.by_owner[key] = held.by_owner.get(key, 0) + nbytes
        return held

    def _owner(self, use: Use, pods: Pods, held: _Held) -> Owner | None:
        """Return whose process it is: of nested containers, the one that the API server knows."""
        held.num_processes += 1
        found = containers_of(use.pid, proc=self._proc)
        if found is None:
            held.num_missing += 1
            return None
        return next((pods.owners[each] for each in found if each in pods.owners), None)

    def _are_other_pids(self, held: _Held) -> bool:
        """Return whether the driver and we speak of different process namespaces."""
        if held.num_missing == 0 or held.num_missing < held.num_processes:
            self._num_missing_looks = 0
            return False
        self._num_missing_looks += 1
        return self._num_missing_looks >= LOOKS_MISSING and not _has_host_pids(self._proc)


def _has_host_pids(proc: Path) -> bool:
    try:
        return (proc / "self" / "ns" / "pid").stat().st_ino == HOST_PIDS
    except OSError:
        return False
