"""Connections with limits: each read and write ends with the time of the whole fetch.

    host -> its addresses, all of them checked -> a connection to one

A timeout of each single read is none of the whole: a byte a second goes on for days.
The only importer of httpcore2, which is what httpx2 opens its connections with.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import local
from typing import Any

import httpcore2
import httpx2

MAX_ADDRESSES = 4
"""Of one host that are tried."""
MAX_AROUND = 256 << 10
"""Bytes of one fetch that are no body: heads, answers that only announce another, how bodies are
cut up. Those of the Hub have 2 KiB; without a limit they go on until the time is over."""

MayAsk = Callable[[str, str], bool]
"""Host, address -> whether it may be asked."""


class Refused(httpx2.TransportError):
    """The request or its answer is beyond a limit; the message completes `REFERENCE …`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one fetch may take."""

    max_bytes: int
    """Of one body, as it is sent: nothing packed is accepted."""
    seconds: float
    """Of everything together."""


_state = local()


@contextmanager
def limited(limits: Limits) -> Iterator[None]:
    """Let this thread's requests share *limits*; without, none is sent."""
    _state.limits = (limits, time.monotonic() + limits.seconds)
    _state.around = 0
    try:
        yield
    finally:
        del _state.limits, _state.around


def limits_now() -> Limits:
    """Return the limits of this thread.

    Raises:
        Refused: if it has none.
    """
    limits: Limits | None = getattr(_state, "limits", (None, 0.0))[0]
    if limits is None:
        raise Refused("is asked for outside of any limit")
    return limits


def seconds_left() -> float:
    """Return how long this thread's requests may still take, more than zero.

    Raises:
        Refused: if their time is over.
    """
    limits = limits_now()
    left: float = _state.limits[1] - time.monotonic()
    if left <= 0:
        raise Refused(f"took longer than {limits.seconds:g} s")
    return left


def count_body(num_bytes: int) -> None:
    """Note that so much of what this thread has read was a body."""
    _state.around -= num_bytes


def _count_read(num_bytes: int) -> None:
    """Note that this thread has read so much.

    Raises:
        Refused: if most of it is no body.
    """
    _state.around += num_bytes
    if _state.around > MAX_AROUND:
        raise Refused(f"comes with more than {MAX_AROUND} bytes around it")


def _within(timeout: float | None) -> float:
    left = seconds_left()
    return left if timeout is None else min(timeout, left)


class GuardedNetwork(httpcore2.NetworkBackend):
    """Opens connections to addresses that *may_ask* accepts; None: to whatever a proxy is at."""

    def __init__(self, inner: httpcore2.NetworkBackend, *, may_ask: MayAsk | None) -> None:
        self._inner = inner
        self._may_ask = may_ask

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Return a connection to *host* at one of its addresses.

        Raises:
            Refused: if it has none, or one that may not be asked.
        """
        failed: httpcore2.ConnectError | httpcore2.ConnectTimeout | None = None
        for address in self._addresses(host, port):
            try:
                stream = self._inner.connect_tcp(
                    address, port, _within(timeout), local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
                continue
            return _Timed(stream)
        raise failed or Refused(f"leads to {host:.100}, which has no address")

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise Refused(f"leads to {host:.100}, which has no address") from error
        addresses = list(dict.fromkeys(str(item[4][0]) for item in found))
        for address in addresses:
            if self._may_ask is not None and not self._may_ask(host, address):
                raise Refused(f"leads to {host:.100} at {address}, an address that is never asked")
        return addresses[:MAX_ADDRESSES]


class _Timed(httpcore2.NetworkStream):
    """A connection of which nothing outlasts the time of the fetch that uses it."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        part = self._inner.read(max_bytes, _within(timeout))
        _count_read(len(part))
        return part

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _within(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        return _Timed(self._inner.start_tls(ssl_context, server_hostname, _within(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
