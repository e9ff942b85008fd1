"""What the controller knows of pods and workloads now, and who is told of changes.

    changes of watches -> Store -> keys that duties should look at

Belongs to one event loop. Holds no answer and no decision: a new controller has the same once its
lists are read.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

from admission.controller.pods import PodView
from admission.controller.tracked import Tracked, key_of
from admission.values import Json
from admission.watch import Changes


class Listener(Protocol):
    """Who is told of changes; on the event loop, and quickly."""

    def pod_changed(self, pod: PodView) -> None:
        """Take note of a pod that is new or has changed."""

    def workload_changed(self, workload: Tracked) -> None:
        """Take note of a workload that is new or has changed."""

    def classes_changed(self) -> None:
        """Take note that the cluster has other cards."""


class Store:
    """Pods by `NAMESPACE/NAME`, workloads by key, pods by their controller's UID."""

    def __init__(self) -> None:
        self._pods: dict[str, Json] = {}
        self._by_owner: dict[str, set[str]] = defaultdict(set)
        self._workloads: dict[str, Tracked] = {}
        self._by_uid: dict[str, str] = {}
        self._listeners: list[Listener] = []
        self._expected: set[str] = set()
        self._listed: set[str] = set()
        self._is_complete = False
        self._is_listed = asyncio.Event()

    def tell(self, listener: Listener) -> None:
        """Tell *listener* of every change from now on."""
        self._listeners.append(listener)

    def expect(self, path: str) -> None:
        """Count as unknown until the objects at *path* were listed."""
        self._expected.add(path)

    def expect_no_more(self) -> None:
        """Take it that everything that is followed from the start was expected by now."""
        self._is_complete = True
        self._settle()

    async def listed(self) -> None:
        """Wait until everything that is expected was listed once."""
        await self._is_listed.wait()

    def _list(self, path: str) -> None:
        self._listed.add(path)
        self._settle()

    def _settle(self) -> None:
        if self._is_complete and self._expected <= self._listed:
            self._is_listed.set()

    def pod(self, key: str) -> PodView | None:
        """Return a pod by `NAMESPACE/NAME`."""
        item = self._pods.get(key)
        return None if item is None else PodView(item)

    def pods(self) -> list[PodView]:
        """Return every pod that may hold a GPU; in any thread: the list is made at one stroke."""
        return [PodView(item) for item in list(self._pods.values())]

    def pods_of(self, owner_uid: str) -> list[PodView]:
        """Return the pods whose controller has that UID."""
        return [PodView(self._pods[key]) for key in sorted(self._by_owner.get(owner_uid, ()))]

    def workload(self, key: str) -> Tracked | None:
        """Return a workload by its key."""
        return self._workloads.get(key)

    def workload_of_uid(self, uid: str) -> Tracked | None:
        """Return a workload by its UID."""
        key = self._by_uid.get(uid)
        return None if key is None else self._workloads.get(key)

    def workloads(self) -> list[Tracked]:
        """Return every workload."""
        return list(self._workloads.values())

    def take_pods(self, path: str, changes: Changes) -> None:
        """Take what the watch of the pods at *path* says."""
        self._list(path)
        for key, item in changes.items():
            before = self._pods.get(key)
            if before is not None and (owner := PodView(before).owner) is not None:
                self._by_owner[owner.uid].discard(key)
                if not self._by_owner[owner.uid]:
                    del self._by_owner[owner.uid]
            if item is None:
                self._pods.pop(key, None)
                continue
            self._pods[key] = item
            pod = PodView(item)
            if pod.owner is not None:
                self._by_owner[pod.owner.uid].add(key)
        self._tell_all(lambda each, pod: each.pod_changed(pod), changes)

    def _tell_all(self, tell: Callable[[Listener, PodView], None], changes: Changes) -> None:
        for item in changes.values():
            if item is not None:
                for listener in self._listeners:
                    tell(listener, PodView(item))

    def take_workloads(self, path: str, kind: tuple[str, str], changes: Changes) -> None:
        """Take what the watch of the workloads of *kind* (group, kind) at *path* says."""
        self._list(path)
        found: dict[str, Tracked] = {}
        for name, item in changes.items():
            key = f"{kind[1]}.{kind[0]}/{name}"
            if (before := self._workloads.pop(key, None)) is not None:
                self._by_uid.pop(before.ref.uid, None)
            if item is None:
                continue
            workload: Tracked = item["tracked"]
            found[key_of(workload.ref)] = workload
            self._workloads[key] = workload
            self._by_uid[workload.ref.uid] = key
        for workload in found.values():
            for listener in self._listeners:
                listener.workload_changed(workload)

    def classes_changed(self) -> None:
        """Tell everybody that the cards of the cluster are others."""
        for listener in self._listeners:
            listener.classes_changed()
