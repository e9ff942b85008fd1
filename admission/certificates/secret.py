"""Agree with the other replicas on one CA and one certificate, by one Secret.

    Secret, rules -> Kept; the Secret is made, renewed or mended on the way

Whoever comes first writes; everybody else reads what was written.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from admission.certificate_settings import SecretPlace
from admission.certificates.kept import Kept, expires, read_kept
from admission.certificates.renewal import Cause, Known, Renewal, Rules, renewed
from admission.errors import ClusterError
from admission.objects import CONFLICT, Found, Objects
from admission.values import Json

ATTEMPTS = 5
"""Each replica writes once for a cause: after this many conflicts the next turn goes on."""
TYPE = "kubernetes.io/tls"

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What the Secret holds, and what stood in the way of making it better."""

    kept: Kept
    found: Found
    refusal: ClusterError | None = None


class KeptSecret:
    """The one Secret."""

    def __init__(self, objects: Objects, place: SecretPlace, rules: Rules) -> None:
        self._objects = objects
        self._rules = rules
        self.name = place.name
        self.collection = f"/api/v1/namespaces/{place.namespace}/secrets"
        self.path = f"{self.collection}/{place.name}"

    def agree(self, *, before: Kept, trusted: bytes | None) -> Agreement:
        """Return what the Secret holds once nothing in it is to be changed.

        *before* is what was known until now; *trusted* the bundle that everybody has trusted for
        long enough.

        Raises:
            ClusterError: if it cannot be read.
        """
        for _ in range(ATTEMPTS):
            found = self._objects.read(self.path)
            kept = read_kept((found.document or {}).get("data") or {})
            known = Known(now=found.now, before=before, is_trusted=trusted == kept.pem)
            renewal = renewed(kept, rules=self._rules, known=known)
            if renewal is None:
                return Agreement(kept=kept, found=found)
            try:
                self._write(found.document, renewal)
            except ClusterError as error:
                if error.status != CONFLICT:
                    return Agreement(kept=kept, found=found, refusal=error)
                continue
            _tell(renewal, kept)
            return Agreement(kept=renewal.kept, found=found)
        return Agreement(kept=kept, found=found, refusal=ClusterError(CONFLICT))

    def _write(self, document: Json | None, renewal: Renewal) -> None:
        data = renewal.kept.data()
        if document is None:
            labels = {"app.kubernetes.io/name": "vramgate"}
            metadata = {"name": self.name, "labels": labels}
            made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": TYPE}
            self._objects.create(self.collection, {**made, "data": data})
            return
        version = document["metadata"]["resourceVersion"]
        changes = {"metadata": {"resourceVersion": version}, "data": data}
        self._objects.patch(self.path, changes)


def _tell(renewal: Renewal, before: Kept) -> None:
    """Write one line: a damaged Secret is somebody's mistake, the rest is routine."""
    assert renewal.kept.leaf is not None
    write = _log.warning if renewal.cause is Cause.DAMAGED else _log.info
    write(
        "certificates written",
        cause=renewal.cause.value,
        flaws=before.flaws,
        new_authority=renewal.kept.authority != before.authority,
        authorities=len(renewal.kept.bundle),
        expires=str(expires(renewal.kept.leaf.certificate)),
    )
