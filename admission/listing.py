"""What a command reads of a cluster, once: its nodes.

    kubeconfig -> Connection -> Nodes

For people's commands: `serve` follows its cluster (`cluster`). Nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import urllib3
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import list_kube_config_contexts

from admission.cluster import CONNECT_SECONDS, NODES, PAGE, Client, Resource, connect
from admission.errors import ManifestError
from admission.values import Json

READ_SECONDS = 30.0
"""For one page of nodes."""


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


def _listed(client: Client, resource: Resource) -> tuple[Json, ...]:
    query = {"limit": str(PAGE)}
    found: list[Json] = []
    while True:
        page = _page(client, resource, query)
        found += [resource.cut(item) for item in page.get("items") or ()]
        more = (page.get("metadata") or {}).get("continue")
        if not more:
            return tuple(found)
        query = {**query, "continue": more}


def _page(client: Client, resource: Resource, query: dict[str, str]) -> Json:
    request = client.param_serialize(
        "GET",
        resource.path,
        query_params=list(resource.query(query).items()),
        header_params={"Accept": resource.accept(listing=True)},
        auth_settings=["BearerToken"],
    )
    try:
        answer: Any = client.call_api(*request, _request_timeout=(CONNECT_SECONDS, READ_SECONDS))
        response: urllib3.BaseHTTPResponse = answer.response
        try:
            if response.status != 200:
                raise ApiException(status=response.status, reason=response.reason)
            page: Json = orjson.loads(response.read())
        finally:
            response.close()
    except ApiException as error:
        raise ManifestError(
            f"{resource.path}: the API server says {error.status} {error.reason or ''}".rstrip(),
            hint="`kubectl auth can-i list nodes` says whether you may",
        ) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ManifestError(
            f"{resource.path}: the API server does not answer",
            hint="`kubectl cluster-info` says where it should be",
        ) from error
    except orjson.JSONDecodeError as error:
        raise ManifestError(f"{resource.path}: the answer is no JSON") from error
    return page
