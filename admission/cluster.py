"""Follow the nodes and namespaces of a cluster.

    list + watch (a thread each) -> immutable snapshots, handed to whoever asked

Objects are cut down to what is read as they arrive; nothing is written to the cluster here.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import structlog
import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from kubernetes.config.incluster_config import load_incluster_config
from kubernetes.config.kube_config import load_kube_config

from admission.capacity.registration import ANNOTATIONS as REGISTRATIONS
from admission.errors import SettingsError
from admission.values import Json
from estimator.errors import Problem

PAGE = 100
"""Objects a page: a node is about 20 KiB before it is cut down."""
CONNECT_SECONDS = 5.0
READ_SECONDS = 90.0
"""Bookmarks come about every minute: a watch that is silent for longer is asked again."""
WATCH_SECONDS = (240, 360)
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
GONE = 410
METADATA_ONLY = "application/json;as={kind};g=meta.k8s.io;v=v1"

Client = ApiClient
"""A connection to an API server, for those who may not know the library."""

Snapshot = Mapping[str, Json]
"""Name -> object, cut down. A new one for every change; never changed itself."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of objects: where they are and what of them is kept."""

    path: str
    cut: Callable[[Json], Json]
    metadata_only: bool = False
    name: str | None = None
    """The one object that is followed; None for all of them."""

    def accept(self, *, listing: bool) -> str:
        """Return the content type to ask for."""
        kind = "PartialObjectMetadataList" if listing else "PartialObjectMetadata"
        return METADATA_ONLY.format(kind=kind) if self.metadata_only else "application/json"

    def query(self, query: Mapping[str, str]) -> dict[str, str]:
        """Return *query* for these objects alone: a role may be bound to one name."""
        named = {} if self.name is None else {"fieldSelector": f"metadata.name={self.name}"}
        return {**query, **named}


def cut_node(node: Json) -> Json:
    """Return what decides which cards a node has and who may go there.

    Nodes of a pool say the same in most labels: each text is held once.
    """
    metadata, status = node.get("metadata") or {}, node.get("status") or {}
    kept: dict[str, Any] = {
        "name": metadata.get("name"),
        "labels": _held_once(metadata.get("labels") or {}),
    }
    annotations = metadata.get("annotations") or {}
    if registered := {key: annotations[key] for key in REGISTRATIONS if key in annotations}:
        kept["annotations"] = registered
    return {
        "metadata": kept,
        "spec": {"taints": (node.get("spec") or {}).get("taints") or []},
        "status": {
            key: _held_once({name: n for name, n in (status.get(key) or {}).items() if "/" in name})
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
    metadata = namespace.get("metadata") or {}
    return {"metadata": {"name": metadata.get("name"), "labels": metadata.get("labels") or {}}}


NODES = Resource(path="/api/v1/nodes", cut=cut_node)
NAMESPACES = Resource(path="/api/v1/namespaces", cut=cut_namespace, metadata_only=True)


class _GoneError(Exception):
    """The version we wanted to go on from is too old: list again."""


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


class Watch:
    """A thread that keeps a snapshot of one resource up to date."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        publish: Callable[[Snapshot], None],
        *,
        first_pause_seconds: float = FIRST_PAUSE_SECONDS,
    ) -> None:
        self._client = client
        self._resource = resource
        self._publish = publish
        self._first_pause_seconds = first_pause_seconds
        self._items: dict[str, Json] = {}
        self._told = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"watch {resource.path}", daemon=True
        )

    def start(self) -> None:
        """Start following. *publish* is called in the watch's own thread."""
        self._thread.start()

    def stop(self) -> None:
        """Publish nothing any more. The thread ends with its connection, at latest with us."""
        self._stopping.set()

    def join(self, seconds: float) -> None:
        """Wait for the thread's end."""
        self._thread.join(seconds)

    def _run(self) -> None:
        version: str | None = None
        pause = self._first_pause_seconds
        while not self._stopping.is_set():
            try:
                if version is None:
                    version = self._list()
                for seen in self._events(version):
                    version, pause, self._told = seen, self._first_pause_seconds, ""
                continue
            except _GoneError:
                _log.info("watch too old", path=self._resource.path)
                version = None
            except urllib3.exceptions.ReadTimeoutError:
                continue
            except (ApiException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                self._tell_once(_reason(error))
            self._stopping.wait(pause * random.uniform(0.5, 1.5))  # noqa: S311 (no secret)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _tell_once(self, reason: str) -> None:
        """Write a line when the reason is another: a role that is missing is missing for long."""
        if reason != self._told:
            _log.warning("watch interrupted", path=self._resource.path, reason=reason)
        self._told = reason

    def _list(self) -> str:
        """Fetch everything, publish it, and return its version."""
        items: dict[str, Json] = {}
        query = {"limit": str(PAGE)}
        while True:
            page = orjson.loads(self._get(query, listing=True).data)
            items |= dict(self._kept(item) for item in page.get("items") or ())
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                break
            query["continue"] = metadata["continue"]
        self._items = items
        self._tell()
        return str(metadata.get("resourceVersion") or "0")

    def _events(self, version: str) -> Iterator[str]:
        """Take in every change after *version*; yield the version after each.

        Raises:
            _GoneError: if the API server no longer has the changes since then.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(random.randint(*WATCH_SECONDS)),  # noqa: S311 (no secret)
        }
        response = self._get(query, listing=False)
        try:
            for line in _lines(response):
                if self._stopping.is_set():
                    return
                yield self._take(orjson.loads(line))
        finally:
            response.close()

    def _take(self, event: Json) -> str:
        kind, item = event.get("type"), event.get("object") or {}
        if kind == "ERROR":
            if item.get("code") == GONE:
                raise _GoneError
            raise ApiException(status=item.get("code"), reason=item.get("reason"))
        if kind != "BOOKMARK":
            self._change(kind, item)
        return str((item.get("metadata") or {}).get("resourceVersion") or "0")

    def _change(self, kind: object, item: Json) -> None:
        """Publish unless nothing changed that is kept: nodes report their health all the time."""
        name, kept = self._kept(item)
        before = self._items.get(name)
        if kind == "DELETED":
            self._items.pop(name, None)
        else:
            self._items[name] = kept
        if self._items.get(name) != before:
            self._tell()

    def _kept(self, item: Json) -> tuple[str, Json]:
        kept = self._resource.cut(item)
        return str(kept["metadata"]["name"]), kept

    def _tell(self) -> None:
        if not self._stopping.is_set():
            self._publish(dict(self._items))

    def _get(self, query: Mapping[str, str], *, listing: bool) -> urllib3.BaseHTTPResponse:
        request = self._client.param_serialize(
            "GET",
            self._resource.path,
            query_params=list(self._resource.query(query).items()),
            header_params={"Accept": self._resource.accept(listing=listing)},
            auth_settings=["BearerToken"],
        )
        answer: Any = self._client.call_api(
            *request, _request_timeout=(CONNECT_SECONDS, READ_SECONDS)
        )
        response: urllib3.BaseHTTPResponse = answer.response
        if response.status == GONE:
            response.close()
            raise _GoneError
        if response.status != 200:
            response.close()
            raise ApiException(status=response.status, reason=response.reason)
        return response


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield each line of *response* as soon as it is whole."""
    rest = b""
    for chunk in response.stream(amt=None):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line)


def _reason(error: Exception) -> str:
    if isinstance(error, ApiException):
        return f"{error.status} {error.reason}"
    return f"{type(error).__name__}: {error}"[:300]
