"""A cluster in memory: a Secret, registrations, who may do what, and somebody who interferes."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from admission.certificates.issuing import Authority
from admission.certificates.kept import Kept, read_kept
from admission.certificates.registration import GROUP
from admission.errors import ClusterError
from admission.objects import Found
from admission.values import Json

SECRETS = "/api/v1/namespaces/vramgate-system/secrets"
SECRET = f"{SECRETS}/vramgate-certificates"
VALIDATING = f"{GROUP}/validatingwebhookconfigurations/vramgate"
MUTATING = f"{GROUP}/mutatingwebhookconfigurations/vramgate"
START = datetime(2030, 1, 1, tzinfo=UTC)


class Cluster:
    """Objects by path, with versions as the API server counts them."""

    def __init__(self, *registrations: str) -> None:
        self.now = START
        self.objects: dict[str, Json] = {}
        self.refused: dict[tuple[str, str], int | None] = {}
        """(verb, path) -> status; None is an API server that does not answer."""
        self.is_away = False
        self.before_write: Iterator[Callable[[], object]] = iter(())
        """What somebody else does just before each of our writes arrives."""
        self.writes: list[tuple[str, str]] = []
        self._version = 0
        for path in registrations:
            self.put(path, registration(path))

    def put(self, path: str, document: Json) -> None:
        """Store *document* at *path*, as somebody else does."""
        self._version += 1
        metadata = {**document.get("metadata", {}), "resourceVersion": str(self._version)}
        self.objects[path] = {**copy.deepcopy(document), "metadata": metadata}

    def read(self, path: str) -> Found:
        """Return the object at *path*."""
        self._check("get", path)
        return Found(document=copy.deepcopy(self.objects.get(path)), now=self.now)

    def create(self, collection: str, document: Json) -> None:
        """Make an object, unless there is one."""
        path = f"{collection}/{document['metadata']['name']}"
        self._interfere()
        self._check("create", path)
        if path in self.objects:
            raise ClusterError(409)
        self.put(path, document)
        self.writes.append(("create", path))

    def patch(self, path: str, changes: Json) -> None:
        """Change an object, unless it has changed since it was read."""
        self._interfere()
        self._check("patch", path)
        found = self.objects.get(path)
        if found is None:
            raise ClusterError(404)
        if changes["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            raise ClusterError(409)
        self.put(path, merged(found, changes))
        self.writes.append(("patch", path))

    def wait(self, **duration: float) -> None:
        """Let time go by."""
        self.now += timedelta(**duration)

    @property
    def kept(self) -> Kept:
        """Return what the Secret holds."""
        return read_kept(self.objects[SECRET]["data"])

    def bundles(self, path: str) -> set[bytes | None]:
        """Return the different `caBundle`s of a registration."""
        found = [one["clientConfig"].get("caBundle") for one in self.objects[path]["webhooks"]]
        return {None if one is None else base64.b64decode(one) for one in found}

    def wipe(self, path: str) -> None:
        """Apply a registration again, as an upgrade does that knows nothing of the CA."""
        self.put(path, registration(path))

    def store(self, kept: Kept) -> None:
        """Store *kept*."""
        self.put(SECRET, secret(kept.data()))

    def _interfere(self) -> None:
        if (act := next(self.before_write, None)) is not None:
            act()

    def _check(self, verb: str, path: str) -> None:
        if self.is_away:
            raise ClusterError(None)
        if (verb, path) in self.refused:
            raise ClusterError(self.refused[verb, path])


def merged(found: Json, changes: Json) -> Json:
    """Return *found* with a strategic merge of what we ever change."""
    made: dict[str, Any] = copy.deepcopy(dict(found))
    if "data" in changes:
        made["data"] = {**(made.get("data") or {}), **changes["data"]}
    for change in changes.get("webhooks", ()):
        (webhook,) = (one for one in made["webhooks"] if one["name"] == change["name"])
        webhook["clientConfig"] |= change["clientConfig"]
    return made


def registration(path: str) -> Json:
    """Return a registration with two webhooks that know no CA."""
    service = {"name": "vramgate", "namespace": "vramgate-system", "path": "/validate"}
    return {
        "metadata": {"name": path.rsplit("/", 1)[1]},
        "webhooks": [
            {"name": name, "clientConfig": {"service": service}, "failurePolicy": "Ignore"}
            for name in ("pods.vramgate.dev", "jobs.vramgate.dev")
        ],
    }


def secret(data: Json) -> Json:
    """Return a Secret that somebody made."""
    metadata = {"name": "vramgate-certificates", "labels": {"by": "somebody"}}
    return {"metadata": metadata, "type": "kubernetes.io/tls", "data": data}


def kept_by(authority: Authority, *, names: tuple[str, ...], now: datetime, **life: float) -> Kept:
    """Return what a Secret holds that *authority* alone signed for."""
    leaf = authority.issue(names, lifetime=timedelta(**life), now=now)
    return Kept(authority=authority, bundle=(authority.bundle,), leaf=leaf)
