"""HTTP with limits: which hosts and addresses may be asked, how long, how much.

    request -> the addresses it may go to -> response, cut off at its limits

Every hop of a redirect passes here again. A host is resolved once for a connection, its addresses
checked, and those same addresses are connected to: a name cannot point elsewhere in between.
Bodies are taken as they are sent, never unpacked: a few KiB of gzip can hold gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2

from admission.sources.addresses import literal_address, may_ask
from admission.sources.network import (
    GuardedNetwork,
    Refused,
    count_body,
    limits_now,
    seconds_left,
)

CONNECT_SECONDS = 1.0
READ_SECONDS = 1.0
MAX_REDIRECTS = 4
_HTTPS = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Which hosts may be asked."""

    named: frozenset[str]
    """Hosts that the operator named: they may have private addresses and any port."""
    others_allowed: bool = False
    """Redirects may lead to other public hosts: the Hub keeps files elsewhere."""
    plain: frozenset[str] = field(default_factory=frozenset)
    """Named hosts that are asked without TLS."""


class GuardedTransport(httpx2.HTTPTransport):
    """A transport that asks only what *hosts* allow, within the limits of `limited`."""

    def __init__(self, hosts: Hosts, *, proxy: str | None = None) -> None:
        super().__init__(trust_env=False, proxy=proxy)
        self._hosts = hosts
        self._has_proxy = proxy is not None
        # httpx2 has no way to say who opens connections; httpcore2, below it, has.
        self._pool._network_backend = GuardedNetwork(
            self._pool._network_backend,
            may_ask=None if self._has_proxy else self._may_ask,
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send *request* if it may be sent.

        Raises:
            Refused: if it may not, or its answer is too long, too late or packed.
        """
        limits = limits_now()
        self._check(request.url)
        left = seconds_left()
        request.headers["Accept-Encoding"] = "identity"
        request.extensions = {
            **request.extensions,
            "timeout": {
                "connect": min(CONNECT_SECONDS, left),
                "read": min(READ_SECONDS, left),
                "write": min(READ_SECONDS, left),
                "pool": left,
            },
        }
        response = super().handle_request(request)
        if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            response.close()
            raise Refused("comes packed, which was not asked for")
        response.stream = _Bounded(response.stream, limits.max_bytes)  # type: ignore[arg-type]
        return response

    def _check(self, url: httpx2.URL) -> None:
        is_named = url.host in self._hosts.named
        if url.scheme != "https" and url.host not in self._hosts.plain:
            raise Refused(f"leads to {url.scheme}://{url.host:.100}, which is not https")
        if is_named:
            return
        if not self._hosts.others_allowed:
            raise Refused(f"leads to {url.host:.100}, a host that the settings do not allow")
        if url.port not in (None, _HTTPS):
            raise Refused(f"leads to port {url.port} of {url.host:.100}, which is never asked")
        address = literal_address(url.host)
        if address is not None and not may_ask(address, is_named=False):
            raise Refused(f"leads to {url.host:.100}, an address that is never asked")

    def _may_ask(self, host: str, address: str) -> bool:
        return may_ask(address, is_named=host in self._hosts.named)


def guarded_client(hosts: Hosts, *, proxy: str | None = None) -> httpx2.Client:
    """Return a client whose every request is guarded, redirects included. It keeps no cookies."""
    return _Client(
        transport=GuardedTransport(hosts, proxy=proxy),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=True,
        max_redirects=MAX_REDIRECTS,
        trust_env=False,
    )


class _Client(httpx2.Client):
    """A client whose troubles with what a redirect names are errors of the transport too."""

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send *request* and follow where it is led.

        Raises:
            httpx2.HTTPError: of whatever kind; `Refused` at a redirect to what is no URL.
        """
        try:
            return super().send(request, **options)
        except (httpx2.InvalidURL, ValueError) as error:
            raise Refused("leads to what is no URL") from error


class _Bounded(httpx2.SyncByteStream):
    """A body that ends with an error at its limits."""

    def __init__(self, inner: httpx2.SyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    def __iter__(self) -> Iterator[bytes]:
        seen = 0
        for chunk in self._inner:
            seen += len(chunk)
            count_body(len(chunk))
            if seen > self._max_bytes:
                raise Refused(f"is longer than {self._max_bytes} bytes")
            seconds_left()
            yield chunk

    def close(self) -> None:
        self._inner.close()
