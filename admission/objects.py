"""Read and write single objects of the cluster: the Secret, registrations, pods, workloads.

    path, document -> document, when the API server answered

Writes only what names the object that was read, by its version or its UID. Never logs a body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, Protocol

import orjson
import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.exceptions import ApiException

from admission.errors import ClusterError
from admission.plaintext import plain
from admission.values import Json

CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
MAX_BYTES = 3 << 20
FIELD_MANAGER = "vramgate"
NOT_FOUND, CONFLICT = 404, 409
WRITTEN = (200, 201, 202)
OPERATIONS = "application/json-patch+json"
JSON = "application/json"
MAX_SAID = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An object as it was read; it may hold keys, so it is not for a log."""

    document: Json | None = field(repr=False)
    """None if there is no such object."""
    now: datetime
    """The clock of the API server: it judges our certificates, and is the same for all of us."""


class Merging(StrEnum):
    """How changes are joined with what is there."""

    STRATEGIC = "application/strategic-merge-patch+json"
    """Joins lists by their keys: the webhooks of a registration by their names. Built-in kinds."""
    PLAIN = "application/merge-patch+json"
    """Replaces lists whole. Every kind."""


class Objects(Protocol):
    """Who reads and writes objects."""

    def read(self, path: str) -> Found:
        """Return the object at *path*.

        Raises:
            ClusterError: if the API server refuses, or does not answer.
        """
        ...

    def create(self, collection: str, document: Json) -> None:
        """Make *document* in *collection*.

        Raises:
            ClusterError: if it is there already (409), is refused, or nobody answers.
        """
        ...

    def patch(self, path: str, changes: Json) -> None:
        """Merge *changes* into the object at *path*; they name the version that was read.

        Raises:
            ClusterError: if it has changed since (409), is refused, or nobody answers.
        """
        ...


class ClusterObjects:
    """Asks the API server."""

    def __init__(
        self, client: ApiClient, *, dated: Callable[[datetime], None] = lambda _: None
    ) -> None:
        """Ask by *client*; *dated* hears the API server's clock with each of its answers."""
        self._client = client
        self._dated = dated

    def read(self, path: str) -> Found:
        """Return the object at *path*."""
        status, body, headers = self._ask("GET", path)
        if status not in (200, NOT_FOUND):
            raise ClusterError(status)
        try:
            document = orjson.loads(body) if status == 200 else None
        except orjson.JSONDecodeError as error:
            raise ClusterError(None) from error
        return Found(document=document, now=_date(headers))

    def create(self, collection: str, document: Json) -> None:
        """Make *document* in *collection*."""
        self._write("POST", collection, document, content_type=JSON)

    def patch(self, path: str, changes: Json) -> None:
        """Merge *changes* into the object at *path*."""
        self._write("PATCH", path, changes, content_type=Merging.STRATEGIC)

    def _write(self, method: str, path: str, document: Any, *, content_type: str) -> None:
        status, _, _ = self._ask(method, path, document=document, content_type=content_type)
        if status not in WRITTEN:
            raise ClusterError(status)

    def _ask(
        self, method: str, path: str, *, document: Any = None, content_type: str = ""
    ) -> tuple[int, bytes, Mapping[str, str]]:
        headers = {"Accept": "application/json"}
        query: list[tuple[str, str]] = []
        if document is not None:
            headers["Content-Type"] = content_type
            query.append(("fieldManager", FIELD_MANAGER))
        try:
            request = self._client.param_serialize(
                method,
                path,
                query_params=query,
                header_params=headers,
                body=document,
                auth_settings=["BearerToken"],
            )
            answer: Any = self._client.call_api(
                *request, _request_timeout=(CONNECT_SECONDS, READ_SECONDS)
            )
            response: urllib3.BaseHTTPResponse = answer.response
            if (moment := _moment(response.headers)) is not None:
                self._dated(moment)
            try:
                return response.status, response.read(MAX_BYTES) or b"", response.headers
            finally:
                response.close()
        except ApiException as error:
            raise ClusterError(error.status) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ClusterError(None) from error


class WritableObjects(ClusterObjects):
    """Changes and deletes people's objects too. Why it is refused is told: those hold no keys."""

    def merge(self, path: str, changes: Json) -> None:
        """Merge *changes* into the object at *path*, of any kind; lists are replaced whole.

        Raises:
            ClusterError: if it is refused, or nobody answers.
        """
        self._told("PATCH", path, changes, content_type=Merging.PLAIN)

    def operate(self, path: str, operations: Sequence[Json]) -> None:
        """Apply JSON Patch *operations* to the object at *path*, all of them or none.

        Raises:
            ClusterError: if one does not apply (422), is refused, or nobody answers.
        """
        self._told("PATCH", path, list(operations), content_type=OPERATIONS)

    def delete(self, path: str, *, uid: str) -> None:
        """Delete the object at *path* if it is the one with *uid*; what it owns follows it.

        Raises:
            ClusterError: if it is another (409), is refused, or nobody answers.
        """
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        self._told("DELETE", path, options, content_type=JSON)

    def _told(self, method: str, path: str, document: Any, *, content_type: str) -> None:
        status, body, _ = self._ask(method, path, document=document, content_type=content_type)
        if status not in WRITTEN:
            raise ClusterError(status, said=_said(body))


def _said(body: bytes) -> str:
    """Return the message of a Status, in one line."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    text = document.get("message") if isinstance(document, dict) else None
    return plain(text, limit=MAX_SAID) if isinstance(text, str) else ""


def _date(headers: Mapping[str, str]) -> datetime:
    """Return the date of an answer; our own clock's if it has none."""
    return _moment(headers) or datetime.now(UTC)


def _moment(headers: Mapping[str, str]) -> datetime | None:
    """Return the date of an answer, None if it has none that is one."""
    try:
        found = parsedate_to_datetime(headers.get("Date") or "")
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
