"""Texts from hosts that the settings allow.

https URL -> Document
"""

from __future__ import annotations

import httpx2

from admission.sources.guard import MAX_REDIRECTS, Hosts, guarded_client
from admission.sources.network import Limits, limited
from admission.sources.references import Reference
from admission.values import Document


class AllowedUrls:
    """Asks hosts of a list, and only them: a redirect to another one is refused."""

    def __init__(self, hosts: Hosts, limits: Limits, *, proxy: str | None = None) -> None:
        self._limits = limits
        self._client = guarded_client(hosts, proxy=proxy)

    def fetch(self, reference: Reference, *, namespace: str) -> Document:  # noqa: ARG002 (any)
        """Return the text at the URL under the empty name, or its bytes if it is no text."""
        try:
            with limited(self._limits):
                response = self._client.get(reference.name)
        except httpx2.InvalidURL:
            return Document(problem="is no URL")
        except httpx2.HTTPError as error:
            return Document(problem=reason_of(error))
        if response.status_code != 200:
            return Document(problem=f"answers with status {response.status_code}")
        try:
            return Document(files={"": response.content.decode("utf-8")})
        except UnicodeDecodeError:
            return Document(blobs={"": response.content})

    def close(self) -> None:
        """Close every connection."""
        self._client.close()


def reason_of(error: Exception) -> str:
    """Return why a request failed, as what completes `REFERENCE …`."""
    if isinstance(error, httpx2.TooManyRedirects):
        return f"redirects more than {MAX_REDIRECTS} times"
    if isinstance(error, httpx2.TimeoutException):
        return "does not answer in time"
    if isinstance(error, httpx2.ConnectError):
        return "cannot be reached"
    if isinstance(error, httpx2.LocalProtocolError):
        return "cannot be asked for"  # the message quotes headers, and one of them is a token
    return f"{error}"[:200] or "cannot be reached"
