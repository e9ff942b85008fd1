"""Objects that a job refers to: ConfigMaps and claims of its namespace, runtimes of TrainJobs.

    Reference -> Document, by one GET

Only by name, never a list, never a Secret: the role of the service account is `get`.
"""

from __future__ import annotations

import re

import orjson
import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.exceptions import ApiException

from admission.sources.references import Origin, Reference
from admission.values import Document
from admission.workloads.config_maps import config_map_document

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A DNS label, as Kubernetes checks it."""
MAX_BYTES = 3 << 20
CONNECT_SECONDS = 1.0
READ_SECONDS = 2.0
_TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
_RESOURCE = "/apis/resource.k8s.io/v1"
_RESOURCES = {
    Origin.CONFIG_MAP: ("/api/v1", "configmaps", True),
    Origin.TRAINING_RUNTIME: (_TRAINER, "trainingruntimes", True),
    Origin.CLUSTER_TRAINING_RUNTIME: (_TRAINER, "clustertrainingruntimes", False),
    Origin.RESOURCE_CLAIM: (_RESOURCE, "resourceclaims", True),
    Origin.RESOURCE_CLAIM_TEMPLATE: (_RESOURCE, "resourceclaimtemplates", True),
}
"""Origin -> group and version, plural, whether it is in a namespace."""
_PROBLEMS = {
    403: "may not be read: give Vramgate's service account `get` on it",
    404: "is not there",
}


class ClusterObjects:
    """Asks the API server."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def fetch(self, reference: Reference, *, namespace: str) -> Document:
        """Return a ConfigMap's data, or another object as JSON under the empty name."""
        # It is text of the object under review, and becomes part of a path.
        if not _NAMESPACE.fullmatch(namespace or "default"):
            return Document(problem=f"is in {namespace:.63}, which is no namespace")
        try:
            body = self._get(_path(reference, namespace or "default"))
        except ApiException as error:
            return Document(
                problem=_PROBLEMS.get(error.status or 0, f"was refused: {error.status}")
            )
        except (urllib3.exceptions.HTTPError, OSError):
            return Document(problem="could not be asked for: the API server does not answer")
        if len(body) > MAX_BYTES:
            return Document(problem=f"is longer than {MAX_BYTES} bytes")
        if reference.origin is not Origin.CONFIG_MAP:
            return Document(files={"": body.decode("utf-8", "replace")})
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            return Document(problem="is no ConfigMap")
        return config_map_document(document)

    def _get(self, path: str) -> bytes:
        request = self._client.param_serialize(
            "GET",
            path,
            header_params={"Accept": "application/json"},
            auth_settings=["BearerToken"],
        )
        answer = self._client.call_api(*request, _request_timeout=(CONNECT_SECONDS, READ_SECONDS))
        response: urllib3.BaseHTTPResponse = answer.response
        try:
            if response.status != 200:
                raise ApiException(status=response.status, reason=response.reason)
            return response.read(MAX_BYTES + 1) or b""
        finally:
            response.close()


def _path(reference: Reference, namespace: str) -> str:
    group, plural, is_namespaced = _RESOURCES[reference.origin]
    place = f"{group}/namespaces/{namespace}" if is_namespaced else group
    return f"{place}/{plural}/{reference.name}"
