"""A webhook that allows everything and remembers what it was asked.

AdmissionReview -> allowed, and a line in `seen`
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.e2e.certificates import KeyPair


@dataclass(slots=True)
class Recorder:
    """What was asked since the last `forget`."""

    url: str
    seen: list[str] = field(default_factory=list)
    """One line a review: `/validate CREATE`."""

    @property
    def distinct(self) -> list[str]:
        """Return each line once: an update that meets another one is tried, and sent, again."""
        return list(dict.fromkeys(self.seen))

    def forget(self) -> None:
        """Forget what was asked."""
        self.seen.clear()


@contextmanager
def recording(pair: KeyPair) -> Iterator[Recorder]:
    """Listen on a free port of loopback for the length of a `with` block."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.public, pair.private)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
            recorder.seen.append(f"{urlsplit(self.path).path} {request['operation']}")
            answer = {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {"uid": request["uid"], "allowed": True},
            }
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    recorder = Recorder(url=f"https://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield recorder
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
