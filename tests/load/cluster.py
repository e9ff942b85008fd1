"""An API server in memory that lists and watches, and a Hub beside it: both can be slow.

    nodes, namespaces, a text by ConfigMap -> what `serve` follows and asks for

What a ConfigMap holds follows from its name. Lives on the caller's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import yaml
from aiohttp import web

from tests.load.states import Nodes

NODES, NAMESPACES = "/api/v1/nodes", "/api/v1/namespaces"
HUB = "/hub"


class Cluster:
    """Objects, changes since the start, and what is held up."""

    def __init__(
        self,
        *,
        namespaces: Mapping[str, Mapping[str, str]],
        nodes: Nodes,
        config_map: Callable[[str], str | None],
    ) -> None:
        self._nodes = dict(nodes)
        self._namespaces = {
            name: {"metadata": {"name": name, "labels": dict(labels)}}
            for name, labels in namespaces.items()
        }
        self._config_map = config_map
        self._version = 1000
        self._changes: list[bytes] = []
        """Events of nodes, one a version after the first."""
        self._changed = asyncio.Event()
        self._flows: dict[str, asyncio.Event] = {}
        self._closing = asyncio.Event()
        self.port = 0
        for name in ("configmaps", "hub"):
            self._flows[name] = asyncio.Event()
            self._flows[name].set()

    @property
    def hub(self) -> str:
        """Return the address of the Hub."""
        return f"http://127.0.0.1:{self.port}{HUB}"

    def hold(self, what: str) -> None:
        """Answer no question about *what*, `configmaps` or `hub`, until it is let go."""
        self._flows[what].clear()

    def let_go(self, what: str) -> None:
        """Answer questions about *what* again, those that wait as well."""
        self._flows[what].set()

    def become(self, nodes: Nodes) -> None:
        """Have *nodes* from now on, and tell every watch what that changes."""
        for name in self._nodes.keys() - nodes.keys():
            self._tell("DELETED", self._nodes[name])
        for name, node in nodes.items():
            if self._nodes.get(name) != node:
                self._tell("MODIFIED" if name in self._nodes else "ADDED", node)
        self._nodes = dict(nodes)
        self._changed.set()
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def serving(self, folder: Path) -> AsyncIterator[Path]:
        """Serve for the length of an `async with` block; give a kubeconfig."""
        app = web.Application()
        app.router.add_get(f"{HUB}/{{path:.*}}", self._model)
        app.router.add_get("/{path:.*}", self._object)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        try:
            yield _kubeconfig(folder, f"http://127.0.0.1:{self.port}")
        finally:
            self._closing.set()
            self._changed.set()
            for flow in self._flows.values():
                flow.set()
            await runner.cleanup()

    async def _object(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if request.query.get("watch") == "true":
            return await self._watched(request)
        if path == NODES:
            return self._list(self._nodes)
        if path == NAMESPACES:
            return self._list(self._namespaces)
        if path.endswith("/configmaps"):
            return self._list({})
        if "/configmaps/" in path:
            await self._flows["configmaps"].wait()
            name = path.rpartition("/")[2]
            text = self._config_map(name)
            if text is None:
                return _json({"kind": "Status", "code": 404}, status=404)
            data = {"spec.json": text}
            return _json({"kind": "ConfigMap", "metadata": {"name": name}, "data": data})
        return _json({"kind": "Status", "code": 404}, status=404)

    async def _model(self, _: web.Request) -> web.StreamResponse:
        await self._flows["hub"].wait()
        return _json({"error": "no such model"}, status=404)

    def _list(self, objects: Mapping[str, Mapping[str, Any]]) -> web.Response:
        metadata = {"resourceVersion": str(self._version)}
        return _json({"items": list(objects.values()), "metadata": metadata})

    async def _watched(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        seen = int(request.query["resourceVersion"])
        while not self._closing.is_set():
            changed = self._changed
            if request.path == NODES and seen < self._version:
                lines = self._changes[seen - self._version :]
                seen = self._version
                if not await _sent(response.write(b"".join(lines))):
                    break
                continue
            await changed.wait()
        return response

    def _tell(self, kind: str, node: Mapping[str, Any]) -> None:
        self._version += 1
        metadata = {**node["metadata"], "resourceVersion": str(self._version)}
        event = {"type": kind, "object": {**node, "metadata": metadata}}
        self._changes.append(orjson.dumps(event) + b"\n")


async def _sent(writing: Awaitable[None]) -> bool:
    try:
        await writing
    except ConnectionError:
        return False
    return True


def _json(document: Any, *, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json")


def _kubeconfig(folder: Path, url: str) -> Path:
    path = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "load",
        "contexts": [{"name": "load", "context": {"cluster": "load", "user": "load"}}],
        "clusters": [{"name": "load", "cluster": {"server": url}}],
        "users": [{"name": "load", "user": {"token": "load"}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path
