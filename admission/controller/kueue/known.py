"""What is known of Kueue's objects now.

    changes of watches -> Known; a job -> its Workload

Belongs to one event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from admission.controller.kueue.checks import Check, check_of
from admission.controller.kueue.flavors import Flavor, Queue, flavor_of, queue_of
from admission.controller.kueue.workloads import PENDING, READY, Queued, queued_of
from admission.values import Json
from admission.watch import Changes

_KEPT = "kept"


class Known:
    """Workloads by `NAMESPACE/NAME`; checks of ours, queues and flavors by name."""

    def __init__(self) -> None:
        self.workloads: dict[str, Queued] = {}
        self.checks: dict[str, Check] = {}
        self.queues: dict[str, Queue] = {}
        self.flavors: dict[str, Flavor] = {}
        self._by_owner: dict[str, str] = {}

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the checks that are ours."""
        return frozenset(self.checks)

    def take_workloads(self, changes: Changes) -> None:
        """Take what changed of Workloads."""
        for key, before in [(key, self.workloads.get(key)) for key in changes]:
            owner = before.owner if before is not None else None
            if owner is not None and self._by_owner.get(owner.uid) == key:
                del self._by_owner[owner.uid]
        _take(self.workloads, changes)
        for key, item in changes.items():
            if item is not None and (owner := item[_KEPT].owner) is not None:
                self._by_owner[owner.uid] = key

    def take_checks(self, changes: Changes) -> None:
        """Take what changed of AdmissionChecks."""
        _take(self.checks, changes)

    def take_queues(self, changes: Changes) -> None:
        """Take what changed of ClusterQueues."""
        _take(self.queues, changes)

    def take_flavors(self, changes: Changes) -> None:
        """Take what changed of ResourceFlavors."""
        _take(self.flavors, changes)

    def workload_of(self, owner_uid: str) -> Queued | None:
        """Return the Workload of the job with that UID."""
        return self.workloads.get(self._by_owner.get(owner_uid, ""))

    def asked(self) -> Iterable[Queued]:
        """Return the Workloads that wait for an answer of ours."""
        return [each for each in self.workloads.values() if self.is_asked(each)]

    def is_asked(self, queued: Queued) -> bool:
        """Return whether a check of ours is Pending, and the quota it is about is there."""
        return bool(queued.reserved) and not queued.over and self._says(queued, PENDING)

    def is_passed(self, queued: Queued) -> bool:
        """Return whether it was admitted with our answer."""
        return queued.admitted and not queued.over and self._says(queued, READY)

    def _says(self, queued: Queued, state: str) -> bool:
        return any(queued.checks.get(name) == state for name in self.checks)


def cut_workload(obj: Json, api_version: str) -> Json:
    """Return what is kept of a Workload."""
    return {_KEPT: queued_of(obj, api_version=api_version)}


def cut_check(obj: Json, api_version: str) -> Json | None:
    """Return what is kept of an AdmissionCheck: nothing of another controller's."""
    check = check_of(obj, api_version=api_version)
    return None if check is None else {_KEPT: check}


def cut_queue(obj: Json, _: str) -> Json:
    """Return what is kept of a ClusterQueue."""
    return {_KEPT: queue_of(obj)}


def cut_flavor(obj: Json, _: str) -> Json:
    """Return what is kept of a ResourceFlavor."""
    return {_KEPT: flavor_of(obj)}


def _take(kept: dict[str, Any], changes: Mapping[str, Json | None]) -> None:
    for key, item in changes.items():
        if item is None:
            kept.pop(key, None)
        else:
            kept[key] = item[_KEPT]
