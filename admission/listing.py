"""What a command reads of a cluster, once: nodes, namespaces, what replicas of ours answer.

    kubeconfig -> Connection -> Nodes, Namespace, …

For people's commands: `serve` follows its cluster (`cluster`). Nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import orjson
import urllib3
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import list_kube_config_contexts

from admission.cluster import (
    CONNECT_SECONDS,
    NAMESPACES,
    NODES,
    PAGE,
    Client,
    Resource,
    connect,
)
from admission.errors import ManifestError
from admission.values import Json

READ_SECONDS = 30.0
"""For one answer."""
MAX_BYTES = 64 << 20
"""Of one answer: a page of nodes is 2 MiB."""
JSON = "application/json"
NO_QUERY: Mapping[str, str] = MappingProxyType({})
_STATUSES = {each.value for each in HTTPStatus}


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A namespace, or why it could not be read."""

    name: str
    metadata: Json
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A cluster that can be asked."""

    client: Client
    namespace: str
    """Where objects belong that name none: as kubectl would create them."""

    def nodes(self) -> tuple[Json, ...]:
        """Return the nodes there are, cut down to what decides.

        Raises:
            ManifestError: if they cannot be listed.
        """
        return _listed(self.client, NODES)

    def pods(self, namespace: str, *, selector: str) -> tuple[Json, ...]:
        """Return the pods of *namespace* whose labels *selector* names.

        Raises:
            ManifestError: if they cannot be listed.
        """
        path = f"{NAMESPACES.path}/{quote(namespace, safe='')}/pods"
        pods = Resource(path=path, cut=lambda pod: pod)
        return _listed(self.client, pods, {"labelSelector": selector})

    def of_pod(self, namespace: str, name: str, *, port: int, path: str) -> tuple[int, bytes]:
        """Return the status and the body of what a pod serves at *path*, over HTTPS.

        By way of the API server, which checks no certificate of a pod.

        Raises:
            ManifestError: if the API server does not answer.
        """
        place = f"{NAMESPACES.path}/{quote(namespace, safe='')}/pods/https:{quote(name, safe='')}"
        return _answer(self.client, f"{place}:{port}/proxy{path}")

    def config_map(self, namespace: str, name: str) -> Json | None:
        """Return a ConfigMap, None if there is none.

        Raises:
            ManifestError: if it may not be read, or nobody answers.
        """
        place = f"{NAMESPACES.path}/{quote(namespace, safe='')}/configmaps/{quote(name, safe='')}"
        status, body = _answer(self.client, place)
        if status == 404:
            return None
        if status != 200:
            raise ManifestError(
                f"{place}: the API server says {status} {_reason(status)}".rstrip(),
                hint=f"`kubectl auth can-i get configmaps -n {namespace}` says whether you may",
            )
        return _parsed(body, place)

    def namespace_of(self, name: str) -> Namespace:
        """Return the namespace *name*; who may not read it is told so, one not there has no labels.

        Raises:
            ManifestError: if nobody answers.
        """
        status, body = _answer(self.client, f"{NAMESPACES.path}/{quote(name, safe='')}")
        if status == 404:
            return Namespace(name=name, metadata={}, problem="there is no such namespace")
        if status != 200:
            return Namespace(name=name, metadata={}, problem=f"the API server says {status}")
        return Namespace(name=name, metadata=_parsed(body, NAMESPACES.path).get("metadata") or {})


def connection(
    kubeconfig: Path | None, *, context: str | None = None, namespace: str | None = None
) -> Connection:
    """Return a connection to the cluster of *kubeconfig*, or of this pod.

    Raises:
        SettingsError: if there is none, or the file cannot be used.
    """
    client = connect(kubeconfig, context=context)
    if namespace is None and kubeconfig is not None:
        namespace = _namespace_of(kubeconfig, context)
    return Connection(client=client, namespace=namespace or "default")


def _namespace_of(kubeconfig: Path, context: str | None) -> str | None:
    try:
        contexts, current = list_kube_config_contexts(str(kubeconfig))
    except (ConfigException, OSError):
        return None
    wanted = context or (current or {}).get("name")
    found: Json = next((each for each in contexts if each.get("name") == wanted), {})
    return (found.get("context") or {}).get("namespace")


def _listed(
    client: Client, resource: Resource, wanted: Mapping[str, str] = NO_QUERY
) -> tuple[Json, ...]:
    query = {**wanted, "limit": str(PAGE)}
    found: list[Json] = []
    while True:
        page = _page(client, resource, query)
        kept = (resource.cut(item) for item in page.get("items") or ())
        found += [item for item in kept if item is not None]
        more = (page.get("metadata") or {}).get("continue")
        if not more:
            return tuple(found)
        query = {**query, "continue": more}


def _page(client: Client, resource: Resource, query: dict[str, str]) -> Json:
    accept = resource.accept(listing=True)
    status, body = _answer(client, resource.path, query=resource.query(query), accept=accept)
    if status != 200:
        what = resource.path.rsplit("/", 1)[1]
        raise ManifestError(
            f"{resource.path}: the API server says {status} {_reason(status)}".rstrip(),
            hint=f"`kubectl auth can-i list {what}` says whether you may",
        )
    return _parsed(body, resource.path)


def _answer(
    client: Client, path: str, *, query: Mapping[str, str] = NO_QUERY, accept: str = JSON
) -> tuple[int, bytes]:
    """Return the status and the body of what the API server has at *path*.

    Raises:
        ManifestError: if nobody answers.
    """
    request = client.param_serialize(
        "GET",
        path,
        query_params=list(query.items()),
        header_params={"Accept": accept},
        auth_settings=["BearerToken"],
    )
    try:
        answer: Any = client.call_api(*request, _request_timeout=(CONNECT_SECONDS, READ_SECONDS))
        response: urllib3.BaseHTTPResponse = answer.response
        try:
            return response.status, response.read(MAX_BYTES) or b""
        finally:
            response.close()
    except (ApiException, urllib3.exceptions.HTTPError, OSError) as error:
        raise ManifestError(
            f"{path}: the API server does not answer",
            hint="`kubectl cluster-info` says where it should be",
        ) from error


def _parsed(body: bytes, path: str) -> Json:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ManifestError(f"{path}: the answer is no JSON") from error
    if not isinstance(found, dict):
        raise ManifestError(f"{path}: the answer is no JSON object")
    return found


def _reason(status: int) -> str:
    return HTTPStatus(status).phrase if status in _STATUSES else ""
