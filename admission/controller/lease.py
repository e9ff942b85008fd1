"""One controller at work: a Lease that one of them holds and renews.

    Lease, who I am, now -> held or not; renewed until it is lost

Two never act at once: whoever cannot renew stops `lease_seconds` after its last renewal at the
latest, by its own clock, and others wait as long from when they last saw it change, by theirs. So
clocks need not agree.

The official client has a leader election. It is not used: it loads every model of the client
(40 MiB), asks without a time limit, and ends with an exception when the API server is away
(kubernetes 37.0.2 `leaderelection/leaderelection.py`, which catches `ApiException` alone).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from admission.errors import ClusterError
from admission.objects import CONFLICT, Objects
from admission.values import Json

RENEWALS = 3
"""How often it is renewed, or asked for, within its length."""
_log = structlog.get_logger()


@dataclass(slots=True)
class _Seen:
    """Another's Lease as it was last seen to change."""

    version: str
    at: float


class Lease:
    """One candidate's view of the Lease. Belongs to one thread."""

    def __init__(
        self,
        objects: Objects,
        *,
        namespace: str,
        name: str,
        identity: str,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._objects = objects
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._identity = identity
        self._seconds = seconds
        self._clock = clock
        self._now = now
        """Of people's clocks: nobody decides by it, and each renewal has another."""
        self._held_until = 0.0
        self._seen: _Seen | None = None

    @property
    def is_held(self) -> bool:
        """Return whether it is certain that nobody else may act now."""
        return self._clock() < self._held_until

    @property
    def pause(self) -> float:
        """Return the seconds to wait before `turn` is called again."""
        return self._seconds / RENEWALS

    def turn(self) -> bool:
        """Renew it, or take it if nobody has it; return whether it is held."""
        before = self._clock()
        try:
            found = self._objects.read(f"{self._collection}/{self._name}")
            if self._take(found.document, since=before):
                # Counted from before the write: others count from when they see it.
                self._held_until = before + self._seconds
        except ClusterError as error:
            if error.status != CONFLICT:
                _log.warning("lease not asked", name=self._name, reason=str(error))
        return self.is_held

    def release(self) -> None:
        """Give it up, so that the next one need not wait. Silent if that fails."""
        if not self.is_held:
            return
        self._held_until = 0.0
        try:
            document = self._objects.read(f"{self._collection}/{self._name}").document
            spec = (document or {}).get("spec") or {}
            if document is not None and spec.get("holderIdentity") == self._identity:
                self._write(document, {**spec, "holderIdentity": "", "leaseDurationSeconds": 1})
        except ClusterError:
            return

    def _take(self, document: Json | None, *, since: float) -> bool:
        moment = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        mine = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._seconds)),
            "renewTime": moment,
        }
        if document is None:
            spec = {**mine, "acquireTime": moment, "leaseTransitions": 0}
            self._objects.create(
                self._collection,
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": self._name},
                    "spec": spec,
                },
            )
            return True
        spec = document.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder == self._identity:
            self._write(document, {**spec, **mine})
            return True
        if holder and not self._is_over(document, spec, at=since):
            return False
        changes = int(str(spec.get("leaseTransitions") or 0)) + 1
        _log.info("lease taken over", name=self._name, before=holder)
        self._write(document, {**spec, **mine, "acquireTime": moment, "leaseTransitions": changes})
        return True

    def _is_over(self, document: Json, spec: Json, *, at: float) -> bool:
        """Return whether another's Lease has not changed for as long as it is valid."""
        version = str((document.get("metadata") or {}).get("resourceVersion"))
        if self._seen is None or self._seen.version != version:
            self._seen = _Seen(version, at)
        length = float(spec.get("leaseDurationSeconds") or self._seconds)
        return at - self._seen.at >= length

    def _write(self, document: Json, spec: Json) -> None:
        version = document["metadata"]["resourceVersion"]
        changes = {"metadata": {"resourceVersion": version}, "spec": spec}
        self._objects.patch(f"{self._collection}/{self._name}", changes)
