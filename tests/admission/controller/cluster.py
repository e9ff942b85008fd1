"""An API server in memory: objects by path, with versions, UIDs and Events.

Knows merge patches, JSON Patch and deletions with preconditions as the real one answers them, so
that what is written twice is refused twice.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonpatch

from admission.errors import ClusterError
from admission.objects import Found
from admission.values import Json

START = datetime(2030, 1, 1, tzinfo=UTC)
RESOURCES = {
    "/api/v1": (("pods", "Pod"), ("events", "Event"), ("configmaps", "ConfigMap")),
    "/apis/batch/v1": (("jobs", "Job"), ("cronjobs", "CronJob")),
    "/apis/jobset.x-k8s.io/v1alpha2": (("jobsets", "JobSet"),),
    "/apis/kubeflow.org/v1": (("pytorchjobs", "PyTorchJob"),),
    "/apis/kueue.x-k8s.io/v1beta2": (
        ("admissionchecks", "AdmissionCheck"),
        ("clusterqueues", "ClusterQueue"),
        ("resourceflavors", "ResourceFlavor"),
        ("workloads", "Workload"),
    ),
}


class Cluster:
    """Stands in for `WritableObjects`."""

    def __init__(self) -> None:
        self.now = START
        self.objects: dict[str, dict[str, Any]] = {}
        self.writes: list[tuple[str, str]] = []
        """Verb, path of every write that was taken, Events among them."""
        self.asked: list[tuple[str, str]] = []
        self.refused: dict[tuple[str, str], int | None] = {}
        """(verb, path) -> status; None is nobody's answer."""
        self.before_write: Callable[[str, str], None] = lambda *_: None
        """What somebody else does just before one of our writes; may raise as if we died."""
        self._version = 0

    def put(self, path: str, document: Json) -> None:
        """Store *document* at *path*, as somebody else does."""
        self._version += 1
        metadata = {
            "uid": f"uid-{path}",
            **document.get("metadata", {}),
            "resourceVersion": str(self._version),
        }
        self.objects[path] = {**copy.deepcopy(dict(document)), "metadata": metadata}

    def wait(self, **duration: float) -> None:
        """Let time go by."""
        self.now += timedelta(**duration)

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return the Events, in the order of their making."""
        return [each for path, each in self.objects.items() if "/events/" in path]

    def read(self, path: str) -> Found:
        """Return the object at *path*, or what is served below it."""
        self._check("get", path)
        if path in RESOURCES:
            served = [
                {"name": plural, "kind": kind, "namespaced": True}
                for plural, kind in RESOURCES[path]
            ]
            return Found(document={"resources": served}, now=self.now)
        return Found(document=copy.deepcopy(self.objects.get(path)), now=self.now)

    def create(self, collection: str, document: Json) -> None:
        """Make an object, unless there is one."""
        path = f"{collection}/{document['metadata']['name']}"
        self._begin("create", path)
        if path in self.objects:
            raise ClusterError(409)
        self.put(path, document)
        self.writes.append(("create", path))

    def patch(self, path: str, changes: Json) -> None:
        """Merge as `merge` does: no test here has lists to join."""
        self.merge(path, changes)

    def merge(self, path: str, changes: Json) -> None:
        """Change an object, unless it is another, or has changed since the version named."""
        self._begin("patch", path)
        place = path.removesuffix("/status")
        found = self._found(place)
        for key in ("uid", "resourceVersion"):
            named = changes.get("metadata", {}).get(key)
            if named is not None and named != found["metadata"][key]:
                raise ClusterError(409)
        self._store(place, merged(found, changes))
        self.writes.append(("patch", path))

    def operate(self, path: str, operations: Sequence[Json]) -> None:
        """Apply JSON Patch operations, all of them or none."""
        self._begin("patch", path)
        place = path.removesuffix("/status")
        found = self._found(place)
        version = {"op": "replace", "path": "/metadata/resourceVersion"}
        for step in operations:
            if version.items() <= step.items() and step["value"] != version_of(found):
                raise ClusterError(409)
        try:
            after = jsonpatch.apply_patch(found, list(operations))
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
            raise ClusterError(422, said=str(error)[:100]) from error
        self._store(place, after)
        self.writes.append(("patch", path))

    def delete(self, path: str, *, uid: str) -> None:
        """Delete an object, unless it is another."""
        self._begin("delete", path)
        if self._found(path)["metadata"]["uid"] != uid:
            raise ClusterError(409)
        del self.objects[path]
        self.writes.append(("delete", path))

    def _store(self, path: str, document: Json) -> None:
        before = self.objects[path]
        if {**document, "metadata": {**document["metadata"], "resourceVersion": ""}} == {
            **before,
            "metadata": {**before["metadata"], "resourceVersion": ""},
        }:
            return  # as the API server does: nothing changed, no new version
        self.put(path, document)

    def _found(self, path: str) -> dict[str, Any]:
        found = self.objects.get(path)
        if found is None:
            raise ClusterError(404)
        return found

    def _begin(self, verb: str, path: str) -> None:
        self.before_write(verb, path)
        self._check(verb, path)

    def _check(self, verb: str, path: str) -> None:
        self.asked.append((verb, path))
        if (verb, path) in self.refused:
            raise ClusterError(self.refused[verb, path])


def version_of(obj: Json) -> str:
    """Return the version of a stored object."""
    return str(obj["metadata"]["resourceVersion"])


def merged(before: Any, changes: Any) -> Any:
    """Return *before* with *changes* as RFC 7386 says."""
    if not isinstance(changes, dict):
        return copy.deepcopy(changes)
    after = dict(before) if isinstance(before, dict) else {}
    for key, value in changes.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = merged(after.get(key), value)
    return after
