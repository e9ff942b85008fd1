"""What an install of Kueue has beside its process, since it makes its own certificate.

    ports -> Namespace, Service, Secret, webhooks, conversions; the Secret, mounted

The Service is an alias of loopback: the API server checks the certificate for the Service's name.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from tests.e2e.operators.catalog import KUEUE, KUEUE_NAMESPACE
from tests.e2e.operators.operator import Document, Place
from tests.e2e.rest import ApiServer

SERVICE = {"namespace": KUEUE_NAMESPACE, "name": "kueue-webhook-service"}
SECRET: Document = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"namespace": KUEUE_NAMESPACE, "name": "kueue-webhook-server-cert"},
}
FILES = ("tls.crt", "tls.key")
CONVERTED = ("ClusterQueue", "Cohort", "LocalQueue", "MultiKueueCluster", "Workload")
"""Kinds with older versions: Kueue's `config/components/crd/kustomization.yaml`."""


def objects(place: Place) -> Iterator[Document]:
    """Yield what is there before the process: it looks for them to put its CA into."""
    port = place.webhooks
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KUEUE_NAMESPACE}}
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": SERVICE, "spec": spec}
    yield SECRET
    for document in KUEUE.webhooks():
        for webhook in document["webhooks"]:
            webhook["clientConfig"]["service"] |= {**SERVICE, "port": port}
        yield document


def conversion(place: Place) -> dict[str, Any]:
    """Return what makes the API server ask *place* to convert the objects of a kind."""
    service = {**SERVICE, "path": "/convert", "port": place.webhooks}
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    return {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}


def is_mounted(api: ApiServer, place: Place) -> bool:
    """Return whether the certificate is in its folder, put there as a kubelet would."""
    data = api.get(SECRET).body.get("data", {})
    if not all(data.get(name) for name in FILES):
        return False
    for name in FILES:
        path = place.serving / name
        if not path.exists():
            path.write_bytes(base64.b64decode(data[name]))
    return True
