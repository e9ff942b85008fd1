"""What we ask of an API server, and what its answers are taken for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.cluster import Client, connect
from admission.errors import ClusterError
from admission.objects import ClusterObjects

SECRET = "/api/v1/namespaces/x/secrets/y"


class Api:
    """A server that remembers requests and gives one answer to all."""

    def __init__(self) -> None:
        self.status = 200
        self.body = b'{"kind": "Secret"}'
        self.asked: list[tuple[str, str, str | None, Any]] = []
        api = self

        class Requests(BaseHTTPRequestHandler):
            """One connection."""

            def do_GET(self) -> None:
                """Remember and answer."""
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                api.asked.append((self.command, self.path, self.headers["Content-Type"], body))
                self.send_response_only(api.status)
                self.send_header("Date", "Tue, 01 Jan 2030 10:00:00 GMT")
                self.send_header("Content-Length", str(len(api.body)))
                self.end_headers()
                self.wfile.write(api.body)

            do_POST = do_PATCH = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        """Stop."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def api() -> Iterator[Api]:
    """A server on loopback."""
    made = Api()
    yield made
    made.close()


@pytest.fixture
def objects(api: Api, tmp_path: Path) -> Iterator[ClusterObjects]:
    """A client of it, from a kubeconfig."""
    client = client_of(api, tmp_path)
    yield ClusterObjects(client)
    client.close()


def client_of(api: Api, directory: Path) -> Client:
    """Return a client of *api*."""
    host, port = api.server.server_address[:2]
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://{host!s}:{port}"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return connect(path)


def test_object_comes_with_the_clock_of_the_api_server(objects: ClusterObjects) -> None:
    """The `Date` of the answer, which is the same for all replicas."""
    found = objects.read(SECRET)

    assert found.document == {"kind": "Secret"}
    assert found.now == datetime(2030, 1, 1, 10, tzinfo=UTC)
    assert "Secret" not in repr(found)


@pytest.mark.parametrize("status", [200, 404, 503])
def test_each_answer_tells_the_clock_of_the_api_server(
    api: Api, tmp_path: Path, status: int
) -> None:
    """Whatever it says otherwise; the controller reckons by it."""
    api.status = status
    told: list[datetime] = []
    client = client_of(api, tmp_path)
    with suppress(ClusterError):
        ClusterObjects(client, dated=told.append).read(SECRET)
    client.close()

    assert told == [datetime(2030, 1, 1, 10, tzinfo=UTC)]


def test_object_that_is_not_there_is_none(api: Api, objects: ClusterObjects) -> None:
    """404 is an answer."""
    api.status = 404

    assert objects.read(SECRET).document is None


def test_writes_are_ours_by_name(api: Api, objects: ClusterObjects) -> None:
    """A POST of JSON and a strategic merge, both with our field manager."""
    objects.create("/api/v1/namespaces/x/secrets", {"a": 1})
    objects.patch(SECRET, {"b": 2})

    merge = "application/strategic-merge-patch+json"
    manager = "?fieldManager=vramgate"
    assert api.asked == [
        ("POST", f"/api/v1/namespaces/x/secrets{manager}", "application/json", {"a": 1}),
        ("PATCH", f"{SECRET}{manager}", merge, {"b": 2}),
    ]


@pytest.mark.parametrize("status", [401, 403, 409, 422, 500])
def test_refusal_carries_its_status_and_no_body(
    api: Api, objects: ClusterObjects, status: int
) -> None:
    """A body may repeat what was sent, keys and all."""
    api.status = status
    api.body = b'{"message": "the key"}'

    for ask in (
        lambda: objects.read(SECRET),
        lambda: objects.create(SECRET, {}),
        lambda: objects.patch(SECRET, {}),
    ):
        with pytest.raises(ClusterError) as caught:
            ask()
        assert caught.value.status == status
        assert str(caught.value) == f"HTTP {status}"


def test_answer_that_is_no_json_is_none_at_all(api: Api, objects: ClusterObjects) -> None:
    """A proxy in between says something of its own."""
    api.body = b"<html>"

    with pytest.raises(ClusterError, match="does not answer"):
        objects.read(SECRET)


def test_nobody_there_is_said_so(api: Api, objects: ClusterObjects, tmp_path: Path) -> None:
    """Without a status."""
    stranger = client_of(api, tmp_path)
    api.server.server_close()

    with pytest.raises(ClusterError, match="does not answer") as caught:
        ClusterObjects(stranger).read(SECRET)

    assert caught.value.status is None
    stranger.close()
