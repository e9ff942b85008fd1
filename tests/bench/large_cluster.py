"""An API server in memory with thousands of nodes, pods and Jobs; what is written is remembered.

    numbers -> LargeCluster, serving on loopback -> writes, each with its moment

Objects are as long as real ones and made as they are sent, so that this holds little itself.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import yaml
from aiohttp import web

from tests.bench.nodes import node_of
from tests.builders import GPU, spec_document

NAMESPACE = "team"
SPEC = "vramgate.dev/spec"
RESOURCES = {
    "/api/v1": [("pods", "Pod"), ("configmaps", "ConfigMap"), ("events", "Event")],
    "/apis/batch/v1": [("jobs", "Job"), ("cronjobs", "CronJob")],
}
ENVIRONMENT = 40
"""Variables of a container: their like is most of a pod's length."""


class LargeCluster:
    """Jobs of four pods each, all running."""

    def __init__(self, *, nodes: int, pods: int) -> None:
        self._num_nodes, self._num_pods = nodes, pods
        self.writes: list[tuple[float, str, str]] = []
        """Moment, method, path; of Events the path ends with the name of whom they are about."""
        self._stored: dict[str, dict[str, Any]] = {}
        self._watches: list[tuple[str, asyncio.Queue[bytes | None]]] = []
        self._loop = asyncio.new_event_loop()
        self._version = 1000

    @property
    def num_jobs(self) -> int:
        """Return how many Jobs there are."""
        return self._num_pods // 4

    def job(self, number: int) -> dict[str, Any]:
        """Return one Job; it says what it trains."""
        note = orjson.dumps(spec_document(batch_size=64)).decode()
        return {
            "metadata": {
                "name": f"train-{number}",
                "namespace": NAMESPACE,
                "uid": f"job-{number}",
                "resourceVersion": "1",
                "annotations": {SPEC: note, "vramgate.dev/verdict": "fits"},
            },
            "spec": {"backoffLimit": 0, "template": {"spec": _pod_spec()}},
            "status": {"startTime": "2030-01-01T00:00:00Z", "active": 4},
        }

    def pod(self, number: int, *, message: str = "") -> dict[str, Any]:
        """Return one pod; with *message* its container has just died with it."""
        owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
        state: dict[str, Any] = {"running": {"startedAt": "2030-01-01T00:00:00Z"}}
        if message:
            ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            state = {
                "terminated": {
                    "exitCode": 1,
                    "reason": "Error",
                    "message": message,
                    "finishedAt": ended,
                }
            }
        return {
            "metadata": {
                "name": f"train-{number // 4}-{number % 4}",
                "namespace": NAMESPACE,
                "uid": f"pod-{number}",
                "resourceVersion": str(self._version),
                "creationTimestamp": "2030-01-01T00:00:00Z",
                "labels": {"job-name": f"train-{number // 4}"},
                "annotations": {
                    "vramgate.dev/verdict": "fits",
                    "vramgate.dev/estimate-bytes": str(6 << 30),
                    "vramgate.dev/least-bytes": str(5 << 30),
                    "vramgate.dev/enough-bytes": str(7 << 30),
                    "vramgate.dev/spec-digest": "sha256:" + "0" * 64,
                },
                "ownerReferences": [
                    {**owner, "name": f"train-{number // 4}", "uid": f"job-{number // 4}"}
                ],
                "managedFields": [
                    {"manager": "kubelet", "fieldsV1": {"f:status": {"x": "y" * 900}}}
                ],
            },
            "spec": {**_pod_spec(), "nodeName": f"node-{number % self._num_nodes:05}"},
            "status": {
                "phase": "Failed" if message else "Running",
                "containerStatuses": [{"name": "train", "restartCount": 0, "state": state}],
            },
        }

    def dies(self, number: int, message: str) -> float:
        """Let pod *number* die of *message*; return the moment."""
        self._version += 1
        line = orjson.dumps({"type": "MODIFIED", "object": self.pod(number, message=message)})

        def send() -> None:
            for path, queue in self._watches:
                if path == "/api/v1/pods":
                    queue.put_nowait(line + b"\n")

        self._loop.call_soon_threadsafe(send)
        return time.monotonic()

    @contextmanager
    def serving(self, folder: Path) -> Iterator[Path]:
        """Serve for the length of a `with` block; give a kubeconfig."""
        ready = threading.Event()
        urls: list[str] = []
        stopping = asyncio.Event()

        async def serve() -> None:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self._answer)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            urls.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
            ready.set()
            await stopping.wait()
            for _, queue in self._watches:
                queue.put_nowait(None)
            await runner.cleanup()

        thread = threading.Thread(target=self._loop.run_until_complete, args=(serve(),))
        thread.start()
        ready.wait(30)
        try:
            yield _kubeconfig(folder, urls[0])
        finally:
            self._loop.call_soon_threadsafe(stopping.set)
            thread.join()
            self._loop.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = f"/{request.match_info['path']}"
        if request.method != "GET":
            return await self._written(request, path)
        if path in RESOURCES:
            served = [
                {"name": plural, "kind": kind, "namespaced": True}
                for plural, kind in RESOURCES[path]
            ]
            return _json({"resources": served})
        if request.query.get("watch") == "true":
            return await self._watched(request, path)
        make = self._lists().get(path)
        if make is not None:
            return self._page(request, *make)
        found = self._stored.get(path) or self._one(path)
        return _json(found) if found is not None else _json({"code": 404}, status=404)

    def _lists(self) -> dict[str, tuple[int, Callable[[int], Any]]]:
        namespace = {"metadata": {"name": NAMESPACE, "labels": {"vramgate.dev/mode": "enforce"}}}
        return {
            "/api/v1/nodes": (self._num_nodes, node_of),
            "/api/v1/namespaces": (1, lambda _: namespace),
            "/api/v1/pods": (self._num_pods, self.pod),
            "/apis/batch/v1/jobs": (self.num_jobs, self.job),
            "/apis/batch/v1/cronjobs": (0, self.job),
        }

    def _page(self, request: web.Request, count: int, make: Callable[[int], Any]) -> web.Response:
        start = int(request.query.get("continue") or 0)
        end = min(start + int(request.query.get("limit") or count or 1), count)
        more = str(end) if end < count else ""
        items = [make(number) for number in range(start, end)]
        return _json({"items": items, "metadata": {"resourceVersion": "1000", "continue": more}})

    def _one(self, path: str) -> Any:
        collection, _, name = path.rpartition("/")
        parts = name.split("-")
        if not name.startswith("train-") or not all(part.isdigit() for part in parts[1:]):
            return None
        if collection.endswith("/jobs"):
            return self.job(int(parts[1]))
        if collection.endswith("/pods") and len(parts) == 3:
            return self.pod(4 * int(parts[1]) + int(parts[2]))
        return None

    async def _watched(self, request: web.Request, path: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._watches.append((path, queue))
        try:
            while (line := await queue.get()) is not None:
                await response.write(line)
        except ConnectionError:
            pass
        finally:
            self._watches.remove((path, queue))
        return response

    async def _written(self, request: web.Request, path: str) -> web.Response:
        document: Any = await request.json(loads=orjson.loads)
        about = path
        if path.endswith("/events"):
            about = f"{path}/{document['involvedObject']['name']}"
        elif request.method == "POST":
            path = f"{path}/{document['metadata']['name']}"
        if "/leases" not in path:
            self.writes.append((time.monotonic(), request.method, about))
        if not path.endswith("/events"):
            self._version += 1
            before = self._stored.get(path) or self._one(path) or {}
            after = _merged(before, document) if isinstance(document, dict) else before
            after.setdefault("metadata", {})["resourceVersion"] = str(self._version)
            self._stored[path] = after
        return _json({"kind": "Status"}, status=201 if request.method == "POST" else 200)


def _merged(before: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    after = dict(before)
    for key, value in changes.items():
        is_inner = isinstance(value, dict) and isinstance(after.get(key), dict)
        after[key] = _merged(after[key], value) if is_inner else value
    return after


def _pod_spec() -> dict[str, Any]:
    environment = [{"name": f"NAME_{number}", "value": 60 * "x"} for number in range(ENVIRONMENT)]
    return {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "train",
                "image": "registry.example.com/train:1",
                "command": ["python", "train.py"],
                "env": environment,
                "resources": {"limits": {GPU: "1"}},
            }
        ],
    }


def _json(document: Any, *, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json")


def _kubeconfig(folder: Path, url: str) -> Path:
    path = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "clusters": [{"name": "bench", "cluster": {"server": url}}],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path
