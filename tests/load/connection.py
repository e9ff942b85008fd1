"""One connection of an API server: TLS, kept alive, one question after the other.

    request bytes -> (status, body)

No client library: a thousand reviews a second are to cost little of the machine under test.
"""

from __future__ import annotations

import asyncio
import ssl

ABANDONED_SECONDS = 120.0
"""Longer than any answer may take: what is not there by then is lost."""
HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length:"

Reply = tuple[int, bytes]


class StrayBytesError(Exception):
    """The server sent what nobody asked for: an answer given twice, or longer than it says."""


class Connection(asyncio.Protocol):
    """Asks, and waits for the one answer."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._waiting: asyncio.Future[Reply] | None = None
        self._failure: Exception | None = None

    @property
    def transport(self) -> asyncio.Transport:
        """Return what is written to."""
        assert self._transport is not None, "not connected"
        return self._transport

    @property
    def is_open(self) -> bool:
        """Return whether it may be asked once more."""
        return self._failure is None and not self.transport.is_closing()

    @property
    def certificate(self) -> bytes:
        """Return the certificate that the server showed (DER)."""
        shown = self.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return bytes(shown or b"")

    async def ask(self, request: bytes) -> Reply:
        """Return what is answered.

        Raises:
            StrayBytesError: if more came than was asked for.
            OSError: if the connection ends first, or nothing comes for minutes.
        """
        waiting = self.expect()
        self.transport.write(request)
        return await self.answer(waiting)

    def expect(self) -> asyncio.Future[Reply]:
        """Return the answer to come: for whoever writes the question in pieces."""
        if self._failure is not None:
            raise self._failure
        self._waiting = asyncio.get_running_loop().create_future()
        return self._waiting

    async def answer(self, waiting: asyncio.Future[Reply]) -> Reply:
        """Return what *waiting* brings.

        Raises:
            OSError: see `ask`.
        """
        async with asyncio.timeout(ABANDONED_SECONDS):
            return await waiting

    def close(self) -> None:
        """End the connection."""
        self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take *transport*."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take *data*, and the answer once it is whole."""
        self._buffer += data
        end = self._buffer.find(HEAD_END)
        if end < 0:
            return
        head = bytes(self._buffer[:end])
        lower = head.lower()
        at = lower.index(LENGTH) + len(LENGTH)
        length = int(lower[at:].partition(b"\r\n")[0])
        whole = end + len(HEAD_END) + length
        if len(self._buffer) < whole:
            return
        body = bytes(self._buffer[end + len(HEAD_END) : whole])
        status = int(head[9:12])
        is_stray = len(self._buffer) > whole or self._waiting is None
        self._buffer.clear()
        if is_stray:
            self._fail(StrayBytesError("bytes beyond the answer"))
            return
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result((status, body))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        self._fail(exc or ConnectionResetError("the server ended the connection"))

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)


async def connect(port: int, context: ssl.SSLContext) -> Connection:
    """Return a connection to *port* of loopback, its certificate checked."""
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(
        Connection, "127.0.0.1", port, ssl=context, server_hostname="127.0.0.1"
    )
    return made


async def fetched(port: int, context: ssl.SSLContext, path: str) -> Reply:
    """Return what one GET on a connection of its own brings."""
    made = await connect(port, context)
    try:
        return await made.ask(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    finally:
        made.close()
