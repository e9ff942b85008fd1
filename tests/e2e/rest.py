"""Talk to an API server as a person's client does, and keep the warnings it sends.

    method, path, object -> Answer (status, body, warnings)

The official client drops `Warning` headers; what a user sees of a warning is in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import urllib3

from tests.e2e.cluster import Credentials

# RFC 9111 appendix: `299 - "text"`, where the text escapes quotes and backslashes.
WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')

CLUSTER_SCOPED = frozenset(
    {
        "AdmissionCheck",
        "ClusterQueue",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterTrainingRuntime",
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "Namespace",
        "ResourceFlavor",
        "SubjectAccessReview",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    }
)
"""Kinds that are in no namespace."""

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said."""

    status: int
    body: Mapping[str, Any]
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        """Return the error text that a client prints; empty if there is none."""
        return str(self.body.get("message", ""))


class ApiServer:
    """A client of one API server."""

    def __init__(self, credentials: Credentials) -> None:
        self._url = credentials.url
        self._headers = {
            "Authorization": f"Bearer {credentials.token}",
            "Accept": "application/json",
        }
        self._pool = urllib3.PoolManager(ca_certs=str(credentials.authority), retries=False)

    def create(
        self, document: Mapping[str, Any], *, dry_run: bool = False, strict: bool = False
    ) -> Answer:
        """Send *document* to the collection of its kind; *strict* refuses unknown fields."""
        query = {"dryRun": "All"} if dry_run else {}
        query |= {"fieldValidation": "Strict"} if strict else {}
        return self._send("POST", collection(document), query=query, document=document)

    def get(self, document: Mapping[str, Any]) -> Answer:
        """Read the object that *document* names."""
        return self._send("GET", f"{collection(document)}/{document['metadata']['name']}")

    def patch(
        self,
        document: Mapping[str, Any],
        changes: Mapping[str, Any],
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Answer:
        """Merge *changes* into the object that *document* names, or into its *subresource*."""
        path = f"{collection(document)}/{document['metadata']['name']}/{subresource}".rstrip("/")
        query = {"dryRun": "All"} if dry_run else {}
        return self._send("PATCH", path, query=query, document=changes, content_type=MERGE)

    def apply(self, document: Mapping[str, Any]) -> Answer:
        """Make the object that *document* names as it says, as `kubectl apply --server-side`."""
        path = f"{collection(document)}/{document['metadata']['name']}"
        query = {"fieldManager": "person"}
        return self._send("PATCH", path, query=query, document=document, content_type=APPLY)

    def delete(self, document: Mapping[str, Any], *, grace_seconds: int | None = None) -> Answer:
        """Delete the object that *document* names; with 0 nobody need have ended its pod."""
        query = {} if grace_seconds is None else {"gracePeriodSeconds": str(grace_seconds)}
        path = f"{collection(document)}/{document['metadata']['name']}"
        return self._send("DELETE", path, query=query)

    def token(self, account: Mapping[str, Any], *, pod: Mapping[str, Any] | None = None) -> str:
        """Return a token of the service account *account*, good for an hour.

        With *pod*, as the API server has it, the one that its kubelet mounts: it names the node.
        """
        path = f"{collection(account)}/{account['metadata']['name']}/token"
        spec: dict[str, Any] = {"expirationSeconds": 3600}
        if pod is not None:
            names = {key: pod["metadata"][key] for key in ("name", "uid")}
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", **names}
        return str(self._send("POST", path, document={"spec": spec}).body["status"]["token"])

    def read(self, path: str, **query: str) -> Answer:
        """Read *path*."""
        return self._send("GET", path, query=query)

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        document: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        url = f"{self._url}{path}" + (f"?{urlencode(query)}" if query else "")
        body = None if document is None else json.dumps(document).encode()
        headers = {**self._headers, "Content-Type": content_type}
        response = self._pool.request(method, url, body=body, headers=headers, timeout=30)
        return Answer(
            response.status,
            json.loads(response.data),
            warning_texts(response.headers.getlist("Warning")),
        )


def collection(document: Mapping[str, Any]) -> str:
    """Return the path of the collection that *document* belongs to."""
    version, kind = document["apiVersion"], document["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    if kind in CLUSTER_SCOPED:
        return f"{root}/{plural(kind)}"
    return f"{root}/namespaces/{document['metadata'].get('namespace', 'default')}/{plural(kind)}"


def plural(kind: str) -> str:
    """Return what the collection of *kind* is called. True of the kinds of these tests."""
    name = kind.lower()
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def warning_texts(headers: Sequence[str]) -> tuple[str, ...]:
    """Return the texts of `Warning` headers, of which one line may hold several."""
    texts = (match for header in headers for match in WARNING.findall(header))
    return tuple(re.sub(r"\\(.)", r"\1", text) for text in texts)
