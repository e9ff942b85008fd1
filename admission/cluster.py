"""The cluster that is asked, and what is kept of its objects.

kubeconfig -> Client; Node, Namespace -> what decides
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.config import ConfigException
from kubernetes.config.incluster_config import load_incluster_config
from kubernetes.config.kube_config import load_kube_config

from admission.capacity.registration import ANNOTATIONS as REGISTRATIONS
from admission.errors import SettingsError
from admission.outages import Followed
from admission.values import Json
from admission.workloads.fields import part, parts, word, words_of
from estimator.errors import Problem

PAGE = 100
"""Objects a page: a node is about 20 KiB before it is cut down."""
CONNECT_SECONDS = 5.0
"""For the TLS handshake too."""
METADATA_ONLY = "application/json;as={kind};g=meta.k8s.io;v=v1"

Client = ApiClient
"""A connection to an API server, for those who may not know the library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of objects: where they are and what of them is kept."""

    path: str
    cut: Callable[[Json], Json | None]
    """None for an object that is of no interest as it is."""
    metadata_only: bool = False
    name: str | None = None
    """The one object that is followed; None for all of them."""
    fields: str | None = None
    """A selector on fields instead, as the API server takes it: `spec.nodeName=a`."""
    page: int = PAGE
    """Objects that are held at once before they are cut down."""
    in_namespaces: bool = False
    """Objects of every namespace: they are told apart by `NAMESPACE/NAME`."""

    def key(self, item: Json) -> str:
        """Return what tells *item*, as the API server sends it, from others of its kind.

        Raises:
            ValueError: if it has no name: it is no object of an API server.
        """
        metadata = part(part(item).get("metadata"))
        name = word(metadata.get("name"))
        if not name:
            raise ValueError("an object without a name")
        return f"{word(metadata.get('namespace'))}/{name}" if self.in_namespaces else name

    @property
    def followed(self) -> Followed:
        """Return what is followed, as it is told to people."""
        path = self.path if self.name is None else f"{self.path}/{self.name}"
        return Followed(kind=self.path.rsplit("/", 1)[1], path=path)

    def accept(self, *, listing: bool) -> str:
        """Return the content type to ask for."""
        kind = "PartialObjectMetadataList" if listing else "PartialObjectMetadata"
        return METADATA_ONLY.format(kind=kind) if self.metadata_only else "application/json"

    def query(self, query: Mapping[str, str]) -> dict[str, str]:
        """Return *query* for these objects alone: a role may be bound to one name."""
        fields = self.fields if self.name is None else f"metadata.name={self.name}"
        return dict(query) if fields is None else {**query, "fieldSelector": fields}


def cut_node(node: Json) -> Json:
    """Return what decides which cards a node has and who may go there.

    Nodes of a pool say the same in most labels: each text is held once.
    """
    metadata, spec, status = (part(part(node).get(key)) for key in ("metadata", "spec", "status"))
    kept: dict[str, Any] = {
        "name": word(metadata.get("name")),
        "labels": _held_once(words_of(metadata.get("labels"))),
    }
    annotations = words_of(metadata.get("annotations"))
    if registered := {key: annotations[key] for key in REGISTRATIONS if key in annotations}:
        kept["annotations"] = registered
    return {
        "metadata": kept,
        "spec": {"taints": list(parts(spec.get("taints")))},
        "status": {
            key: _held_once({name: n for name, n in part(status.get(key)).items() if "/" in name})
            for key in ("capacity", "allocatable")
        },
    }


def _held_once(texts: Json) -> Json:
    return {
        sys.intern(key): sys.intern(value) if type(value) is str else value
        for key, value in texts.items()
    }


def cut_namespace(namespace: Json) -> Json:
    """Return a namespace's name and labels."""
    metadata = part(part(namespace).get("metadata"))
    labels = words_of(metadata.get("labels"))
    return {"metadata": {"name": word(metadata.get("name")), "labels": labels}}


NODES = Resource(path="/api/v1/nodes", cut=cut_node)
NAMESPACES = Resource(path="/api/v1/namespaces", cut=cut_namespace, metadata_only=True)


def is_in_cluster() -> bool:
    """Return whether Kubernetes runs this process, by what it injects into every container."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def connect(kubeconfig: Path | None, *, context: str | None = None) -> ApiClient:
    """Return a client for the cluster of *kubeconfig*, or the one this pod runs in.

    *context* is one of the file's; None is its current one.

    Raises:
        SettingsError: if there is neither, or the file cannot be used.
    """
    configuration = Configuration()
    # Not from the environment, where the client takes a proxy even for loopback; a kubeconfig may
    # name one.
    configuration.proxy = None
    try:
        if kubeconfig is None:
            load_incluster_config(client_configuration=configuration)
        else:
            load_kube_config(
                config_file=str(kubeconfig), context=context, client_configuration=configuration
            )
    except (ConfigException, OSError) as error:
        path = str(kubeconfig) if kubeconfig else "kubeconfig"
        raise SettingsError(
            [Problem(path=path, message=str(error)[:300])],
            hint="give `--kubeconfig`, run in a cluster, or set `nodes.file`",
        ) from error
    configuration.keep_alive = True
    # One attempt: this module has its own pauses.
    configuration.retries = urllib3.Retry(connect=0, read=0, redirect=2, status=0)
    return ApiClient(configuration)
