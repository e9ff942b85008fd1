"""A fake API server that speaks list and watch as it is told, and a watch of it."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from admission.cluster import Client, Resource, connect
from admission.outages import Outages, TellInterrupted
from admission.watch import Snapshot, Times, Watch
from tests.builders import node

WAIT_SECONDS = 10.0
QUICK = Times(first_pause=0.01)
SILENCE = object()
"""A line that never comes, and nothing after it."""


class FakeApi:
    """Answers each request with the next scripted answer; remembers what was asked."""

    def __init__(self) -> None:
        self.asked: queue.Queue[tuple[str, Mapping[str, list[str]], str]] = queue.Queue()
        self.answers: queue.Queue[tuple[int | None, list[Any]]] = queue.Queue()
        self.back = threading.Event()
        """Lets go of what hangs."""
        self.closing = threading.Event()
        api = self

        class Requests(BaseHTTPRequestHandler):
            """One connection."""

            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                """Answer with the lines scripted, one chunk each; hold when the script ends."""
                split = urlsplit(self.path)
                api.asked.put((split.path, parse_qs(split.query), self.headers["Accept"]))
                status, lines = api.next_answer()
                if status is None:
                    api.back.wait()
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in lines:
                    if line is SILENCE:
                        api.back.wait()
                        self.close_connection = True
                        return
                    body = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
                    self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def next_answer(self) -> tuple[int | None, list[Any]]:
        """Return what is scripted next; an ended watch while the test ends."""
        while not self.closing.is_set():
            try:
                return self.answers.get(timeout=0.05)
            except queue.Empty:
                continue
        return 200, []

    def listing(self, *items: Any, version: str, more: str = "") -> None:
        """Script the answer to a list."""
        metadata = {"resourceVersion": version, "continue": more}
        self.answers.put((200, [{"metadata": metadata, "items": list(items)}]))

    def events(self, *events: tuple[str, Any]) -> None:
        """Script the answer to a watch."""
        lines = [{"type": kind, "object": item} for kind, item in events]
        self.answers.put((200, lines))

    def raw(self, *pieces: bytes) -> None:
        """Script an answer of bytes as they are."""
        self.answers.put((200, list(pieces)))

    def error(self, status: int) -> None:
        """Script an HTTP error."""
        self.answers.put((status, [{"kind": "Status", "code": status}]))

    def hang(self, *lines: Any) -> None:
        """Script an answer that never comes; with *lines*, one that stops after them."""
        self.answers.put((200, [*lines, SILENCE]) if lines else (None, []))

    def next_query(self) -> dict[str, str]:
        """Return the query of the next request."""
        _, query, _ = self.asked.get(timeout=WAIT_SECONDS)
        return {key: values[0] for key, values in query.items()}

    def close_all(self) -> None:
        """Let go of everything that is held, from now on."""
        self.closing.set()
        self.back.set()

    def close(self) -> None:
        """Stop, once everything held has been let go."""
        self.close_all()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def client_of(api: FakeApi, directory: Path) -> Client:
    """Return a client for the fake API server, from a kubeconfig in *directory*."""
    host, port = api.server.server_address[:2]
    assert isinstance(host, str)
    return client_at(f"http://{host}:{port}", directory)


def client_at(server: str, directory: Path) -> Client:
    """Return a client for the API server at *server*."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return connect(path)


class Followed:
    """A running watch and the snapshots it published."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        times: Times = QUICK,
        tell: TellInterrupted = print,
    ) -> None:
        self._snapshots: queue.Queue[Snapshot] = queue.Queue()
        self.watch = Watch(
            client, resource, self._snapshots.put, outages=Outages(tell), times=times
        )
        self.watch.start()

    def next(self) -> Snapshot:
        """Return the next snapshot."""
        return self._snapshots.get(timeout=WAIT_SECONDS)

    def names(self) -> list[str]:
        """Return the names in the next snapshot."""
        return sorted(self.next())

    @property
    def num_unseen(self) -> int:
        """Return how many snapshots nobody took."""
        return self._snapshots.qsize()


def versioned(name: str, version: str, **changes: Any) -> dict[str, Any]:
    """Return a node at a resource version."""
    made = node(name, **changes)
    made["metadata"]["resourceVersion"] = version
    return made
