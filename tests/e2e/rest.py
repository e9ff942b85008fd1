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

COLLECTIONS: Mapping[tuple[str, str], str] = {
    ("v1", "Namespace"): "/api/v1/namespaces",
    ("v1", "Pod"): "/api/v1/namespaces/{namespace}/pods",
    ("batch/v1", "Job"): "/apis/batch/v1/namespaces/{namespace}/jobs",
    ("batch/v1", "CronJob"): "/apis/batch/v1/namespaces/{namespace}/cronjobs",
    ("kubeflow.org/v1", "PyTorchJob"): "/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs",
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    ),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"): (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    ),
}


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
            "Content-Type": "application/json",
        }
        self._pool = urllib3.PoolManager(ca_certs=str(credentials.authority), retries=False)

    def create(self, document: Mapping[str, Any], *, dry_run: bool = False) -> Answer:
        """Send *document* to the collection of its kind."""
        query = {"dryRun": "All"} if dry_run else {}
        return self._send("POST", collection(document), query=query, document=document)

    def get(self, document: Mapping[str, Any]) -> Answer:
        """Read the object that *document* names."""
        return self._send("GET", f"{collection(document)}/{document['metadata']['name']}")

    def delete(self, document: Mapping[str, Any]) -> Answer:
        """Delete the object that *document* names."""
        return self._send("DELETE", f"{collection(document)}/{document['metadata']['name']}")

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
    ) -> Answer:
        url = f"{self._url}{path}" + (f"?{urlencode(query)}" if query else "")
        body = None if document is None else json.dumps(document).encode()
        response = self._pool.request(method, url, body=body, headers=self._headers, timeout=30)
        return Answer(
            response.status,
            json.loads(response.data),
            warning_texts(response.headers.getlist("Warning")),
        )


def collection(document: Mapping[str, Any]) -> str:
    """Return the path of the collection that *document* belongs to."""
    kind = (document["apiVersion"], document["kind"])
    return COLLECTIONS[kind].format(namespace=document["metadata"].get("namespace", "default"))


def warning_texts(headers: Sequence[str]) -> tuple[str, ...]:
    """Return the texts of `Warning` headers, of which one line may hold several."""
    texts = (match for header in headers for match in WARNING.findall(header))
    return tuple(re.sub(r"\\(.)", r"\1", text) for text in texts)
