"""An API server that has some objects, and a kubeconfig for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml


class ApiServer:
    """Answers GET by path; remembers what was asked. Lists come in pages of one object."""

    def __init__(self, objects: Mapping[str, Any], *, status: int = 200) -> None:
        self.asked: list[str] = []
        server = self

        class Requests(BaseHTTPRequestHandler):
            """One connection."""

            def do_GET(self) -> None:
                """Answer with the object, a page of the list, or 404."""
                split = urlsplit(self.path)
                server.asked.append(split.path)
                found = objects.get(split.path)
                if isinstance(found, list):
                    start = int(parse_qs(split.query).get("continue", ["0"])[0])
                    more = str(start + 1) if start + 1 < len(found) else ""
                    found = {"items": found[start : start + 1], "metadata": {"continue": more}}
                code = status if status != 200 else 200 if found is not None else 404
                body = json.dumps(found if code == 200 else {"kind": "Status"}).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        """Return where it is."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def serving(objects: Mapping[str, Any], *, status: int = 200) -> Iterator[ApiServer]:
    """Run an API server that has *objects*, by path."""
    server = ApiServer(objects, status=status)
    try:
        yield server
    finally:
        server.close()


def write_kubeconfig(folder: Path, url: str) -> Path:
    """Return a kubeconfig whose current context is `here`, in namespace `team`.

    Its other one, `away`, leads nowhere.
    """
    places = {"here": url, "away": "http://127.0.0.1:1"}
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": "u", "namespace": "team"}}
            for name in places
        ],
        "clusters": [
            {"name": name, "cluster": {"server": server}} for name, server in places.items()
        ],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return path
