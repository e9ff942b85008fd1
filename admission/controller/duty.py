"""What a duty is: it hears of changes, is asked to look at a key, and says what to do.

    change -> keys; key -> Look

A duty writes nothing itself, and decides from what objects say now: it may be asked twice, after a
restart too, and has to say the same until what it wanted has been done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from admission.controller.acts import Look
from admission.controller.pods import PodView
from admission.controller.tracked import Tracked
from admission.values import Json
from admission.watch import Changes

Add = Callable[[str, float], None]
"""Key, seconds from now: have this duty look at it then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """Objects of one kind that a duty follows itself, once the API server serves them."""

    versions: tuple[str, ...]
    """Groups and versions that it can read: the first that is served is followed."""
    kind: str
    cut: Callable[[Json, str], Json | None]
    """Object, its version -> what is kept of it; called in the watch's own thread."""
    take: Callable[[Changes, Add], None]
    """Take what changed, by `NAMESPACE/NAME`, or by name alone; on the event loop, and quickly."""


@runtime_checkable
class Follower(Protocol):
    """A duty that follows objects which nobody else does."""

    @property
    def follows(self) -> tuple[Follow, ...]:
        """Return what it follows."""
        ...


class Duty(Protocol):
    """One thing that the controller looks after. `name` is a label of its metrics."""

    @property
    def name(self) -> str:
        """Return one word, the same for ever."""
        ...

    def pod_changed(self, pod: PodView, add: Add) -> None:
        """Add the keys to look at since *pod* is new or has changed. Quick, and asks nobody."""

    def workload_changed(self, workload: Tracked, add: Add) -> None:
        """Do the same of a workload."""

    def classes_changed(self, add: Add) -> None:
        """Do the same since the cluster has other cards."""

    async def look(self, key: str) -> Look:
        """Return what is to be done about *key* now.

        Raises:
            ClusterError: if the API server was asked in vain: it is looked at again later.
        """
        ...


class Quiet:
    """A duty that hears nothing: for those that need only one kind of change."""

    def pod_changed(self, pod: PodView, add: Add) -> None:
        """Hear nothing."""

    def workload_changed(self, workload: Tracked, add: Add) -> None:
        """Hear nothing."""

    def classes_changed(self, add: Add) -> None:
        """Hear nothing."""
