"""How fast the webhook answers reviews it has answered before, over TLS, and what it holds."""

from __future__ import annotations

import asyncio
import ssl
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
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
from tests.bench.figures import Figure, resident_mib

RATE = 200
SECONDS = 10


async def review_figures() -> AsyncIterator[Figure]:
    """Yield resident memory and the latency of cached reviews at 200 a second."""
    job = yaml.safe_load((EXAMPLES / "resnet50-b64.yaml").read_text())
    with tempfile.TemporaryDirectory(prefix="vramgate-bench-") as name:
        folder, port = Path(name), free_port()
        settings, bundle = write_settings(folder, port=port)
        log = folder / "webhook.log"
        context = ssl.create_default_context(cafile=str(bundle))
        with webhook(settings, log) as process:
            connector = aiohttp.TCPConnector(ssl=context, limit=32)
            base = f"https://127.0.0.1:{port}"
            async with aiohttp.ClientSession(base, connector=connector) as session:
                await wait_until_ready(session, process, log)
                await ask(session, job)
                latencies = await _paced(session, job)
            resident = _resident(process)
    percentiles = statistics.quantiles(latencies, n=100)
    yield Figure(name=f"cached review p50 at {RATE}/s", value=percentiles[49], unit="ms", high=5.0)
    yield Figure(name=f"cached review p99 at {RATE}/s", value=percentiles[98], unit="ms", high=5.0)
    yield Figure(name="serve resident, without workers", value=resident, unit="MiB", high=120)


def _resident(process: subprocess.Popen[bytes]) -> float:
    return resident_mib(process.pid)


async def _paced(session: aiohttp.ClientSession, job: dict[str, object]) -> list[float]:
    """Return the milliseconds of each review, sent on a clock and not one after the other."""
    start = time.perf_counter()

    async def one(index: int) -> float:
        await asyncio.sleep(max(0.0, start + index / RATE - time.perf_counter()))
        began = time.perf_counter()
        async with session.post("/validate?timeout=5s", json=review_of(job)) as reply:
            await reply.read()
        return (time.perf_counter() - began) * 1000

    return list(await asyncio.gather(*(one(index) for index in range(RATE * SECONDS))))
