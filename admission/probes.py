"""The plain routes of agent and controller: `/metrics`, `/healthz`, `/readyz`.

GET -> text

The standard library's server: aiohttp, which serves reviews, would take a sixth of the memory that
the whole agent may have. A few connections at once, each for a few seconds.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from admission.errors import SettingsError
from estimator.errors import Problem

MAX_CONNECTIONS = 8
"""More are closed at once: each has a thread."""
READ_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """What the routes ask. Called in threads of the server."""

    unhealthy: Callable[[], str | None]
    """Why only a new start would help, or None."""
    not_ready: Callable[[], str | None]
    metrics: Callable[[], bytes]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 16

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if one is free."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # the system has no more threads: others are answered later
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, then give the thread back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that goes away is no news."""


@contextlib.contextmanager
def answering(
    host: str, port: int, probes: Probes, *, setting: str = "agent.port"
) -> Iterator[int]:
    """Answer for the length of a `with` block; give the port, which the system chooses for 0.

    *setting* is where the port comes from.

    Raises:
        SettingsError: if the port is taken.
    """
    try:
        server = _Server((host, port), _handler(probes))
    except (OSError, socket.gaierror) as error:
        reason = (error.strerror or "cannot listen").lower()
        raise SettingsError([Problem(path=setting, message=reason)]) from error
    thread = threading.Thread(target=server.serve_forever, name="probes", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


def _handler(probes: Probes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = READ_SECONDS
        server_version = "vramgate"
        sys_version = ""

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                kind = "text/plain; version=0.0.4; charset=utf-8"
                self._answer(200, probes.metrics(), kind=kind)
            elif path in ("/healthz", "/readyz"):
                ask = probes.unhealthy if path == "/healthz" else probes.not_ready
                reason = ask()
                self._answer(503 if reason else 200, f"{reason or 'ok'}\n".encode())
            else:
                self._answer(404, b"not found\n")

        def _answer(self, status: int, body: bytes, *, kind: str = "text/plain") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    return Handler
