"""Real HTTP servers on loopback that behave well or badly.

path -> answer
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], None]


def body(text: str | bytes, *, status: int = 200, length: int | None = None) -> Answer:
    """Return an answer with *text*; *length* is what the header claims."""
    data = text.encode() if isinstance(text, str) else text

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data) if length is None else length))
        handler.end_headers()
        handler.wfile.write(data)

    return send


def redirect(target: str) -> Answer:
    """Return an answer that leads to *target*."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", target)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return send


def endless(chunk: bytes) -> Answer:
    """Return an answer that goes on for as long as somebody reads."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(chunk)
        except OSError:
            handler.close_connection = True

    return send


def held(released: threading.Event) -> Answer:
    """Return an answer that starts only once *released* is set."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        released.wait(30)
        body("late")(handler)

    return send


@contextmanager
def serving(answers: dict[str, Answer]) -> Iterator[tuple[str, list[str]]]:
    """Serve *answers* by path; yield the base URL and the paths asked for, in order."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            answers.get(self.path, body("no such path", status=404))(self)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Say nothing: clients that hang up are what some tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
