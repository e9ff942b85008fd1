"""Read and write a few objects of the cluster: the Secret, the registrations.

    path, document -> document, when the API server answered

Writes only with the version that was read: of two who write, one reads again. Never logs a body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

import orjson
import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.exceptions import ApiException

from admission.errors import ClusterError
from admission.values import Json

CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
MAX_BYTES = 3 << 20
FIELD_MANAGER = "vramgate"
NOT_FOUND, CONFLICT = 404, 409
STRATEGIC = "application/strategic-merge-patch+json"
"""Joins the webhooks of a registration by their names, and leaves alone what it does not name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An object as it was read; it may hold keys, so it is not for a log."""

    document: Json | None = field(repr=False)
    """None if there is no such object."""
    now: datetime
    """The clock of the API server: it judges our certificates, and is the same for all of us."""


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

    def __init__(self, client: ApiClient) -> None:
        self._client = client

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
        self._write("POST", collection, document, content_type="application/json")

    def patch(self, path: str, changes: Json) -> None:
        """Merge *changes* into the object at *path*."""
        self._write("PATCH", path, changes, content_type=STRATEGIC)

    def _write(self, method: str, path: str, document: Json, *, content_type: str) -> None:
        status, _, _ = self._ask(method, path, document=document, content_type=content_type)
        if status not in (200, 201):
            raise ClusterError(status)

    def _ask(
        self, method: str, path: str, *, document: Json | None = None, content_type: str = ""
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
            try:
                return response.status, response.read(MAX_BYTES) or b"", response.headers
            finally:
                response.close()
        except ApiException as error:
            raise ClusterError(error.status) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ClusterError(None) from error


def _date(headers: Mapping[str, str]) -> datetime:
    """Return the date of an answer; our own clock's if it has none."""
    try:
        found = parsedate_to_datetime(headers.get("Date") or "")
    except ValueError:
        return datetime.now(UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
