"""Texts from hosts that the settings allow.

https URL -> Document
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

import httpx2

from admission.sources.guard import MAX_REDIRECTS, Hosts, guarded_client
from admission.sources.network import Limits, limited
from admission.sources.references import Reference
from admission.values import Document

MAX_MODEL_FILE = 8 << 20
"""Bytes of a model file. An ONNX graph of a vision transformer without its weights has 1.3 MiB."""
_MODEL_FILES = (".onnx", ".keras")
_FROM_THE_START = (".h5", ".hdf5")
"""Files that say at their start what they are: the rest, however long, is not asked for."""


class AllowedUrls:
    """Asks hosts of a list, and only them: a redirect to another one is refused."""

    def __init__(self, hosts: Hosts, limits: Limits, *, proxy: str | None = None) -> None:
        self._limits = limits
        self._client = guarded_client(hosts, proxy=proxy)

    def fetch(self, reference: Reference, *, namespace: str) -> Document:  # noqa: ARG002 (any)
        """Return the text at the URL under the empty name, or its bytes if it is no text.

        Of an HDF5 file it may be the start alone.
        """
        path = urlsplit(reference.name).path.lower()
        starts = path.endswith(_FROM_THE_START)
        limits = self._limits
        if starts or path.endswith(_MODEL_FILES):
            limits = replace(limits, max_bytes=max(limits.max_bytes, MAX_MODEL_FILE))
        headers = {"Range": f"bytes=0-{limits.max_bytes - 1}"} if starts else {}
        try:
            with limited(limits):
                response = self._client.get(reference.name, headers=headers)
        except httpx2.InvalidURL:
            return Document(problem="is no URL")
        except httpx2.HTTPError as error:
            return Document(problem=reason_of(error))
        if response.status_code != 200 and not (starts and response.status_code == 206):
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
