"""How fast the webhook answers reviews it has answered before, over TLS, and what it holds."""

from __future__ import annotations

import asyncio
import ssl
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import orjson
import yaml

from deploy.demo import (
    EXAMPLES,
    ask,
    free_port,
    review_of,
    wait_until_ready,
    webhook,
    write_settings,
)
from tests.bench.figures import Figure, resident_mib, used_seconds

JSON = {"Content-Type": "application/json"}
CONNECTIONS = 32
RATE = 500
SECONDS = 10
MOST_USED_MS = 1.0
"""Of a processor, for one review: at this rate half a core. Beyond it one in a hundred waits for
others."""


async def review_figures() -> AsyncIterator[Figure]:
    """Yield resident memory, the latency of cached reviews at 500 a second and what they take."""
    job = yaml.safe_load((EXAMPLES / "resnet50-b64.yaml").read_text())
    with tempfile.TemporaryDirectory(prefix="vramgate-bench-") as name:
        folder, port = Path(name), free_port()
        settings, bundle = write_settings(folder, port=port)
        log = folder / "webhook.log"
        context = ssl.create_default_context(cafile=str(bundle))
        with webhook(settings, log) as process:
            connector = aiohttp.TCPConnector(ssl=context, limit=CONNECTIONS)
            base = f"https://127.0.0.1:{port}"
            async with aiohttp.ClientSession(base, connector=connector) as session:
                await wait_until_ready(session, process, log)
                await ask(session, job)
                for path in ("/mutate", "/validate"):
                    before = used_seconds(process.pid)
                    latencies = await _paced(session, job, path)
                    used = used_seconds(process.pid) - before
                    for figure in _figures(path, latencies, used):
                        yield figure
            resident = _resident(process)
    yield Figure(name="serve resident, without workers", value=resident, unit="MiB", high=120)


def _figures(path: str, latencies: list[float], used: float) -> Iterator[Figure]:
    """Yield what the milliseconds and the seconds of processor time of all reviews come to."""
    percentiles = statistics.quantiles(latencies, n=100)
    for percent in (50, 99):
        name = f"cached {path} p{percent} at {RATE}/s"
        yield Figure(name=name, value=percentiles[percent - 1], unit="ms", high=5.0)
    name = f"cached {path}, of a processor"
    each = 1000 * used / len(latencies)
    yield Figure(name=name, value=each, unit="ms", high=MOST_USED_MS)


def _resident(process: subprocess.Popen[bytes]) -> float:
    return resident_mib(process.pid)


async def _paced(session: aiohttp.ClientSession, job: dict[str, object], path: str) -> list[float]:
    """Return the milliseconds of each review, sent on a clock and not one after the other.

    An API server keeps its connections: they are open before the first one.
    """
    bodies = [orjson.dumps(review_of(job)) for _ in range(RATE * SECONDS)]

    async def sent(body: bytes) -> float:
        began = time.perf_counter()
        async with session.post(f"{path}?timeout=5s", data=body, headers=JSON) as reply:
            await reply.read()
        return (time.perf_counter() - began) * 1000

    async def one(index: int) -> float:
        await asyncio.sleep(max(0.0, start + index / RATE - time.perf_counter()))
        return await sent(bodies[index])

    await asyncio.gather(*map(sent, bodies[:CONNECTIONS]))
    start = time.perf_counter() + 1.0  # once all of them wait for their moment
    return list(await asyncio.gather(*(one(index) for index in range(RATE * SECONDS))))
