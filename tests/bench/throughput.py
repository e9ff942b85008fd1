"""How many cached reviews a second, beside an aiohttp server that only echoes, over TLS.

Both answer the same requests with the same bodies to the same client, in turns of a second on the
same cores: what the machine does beside it, it does to both.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
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
from tests.bench.figures import Figure, used_seconds
from tests.bench.hammer import hammer, post, request_of

PATHS = ("/mutate", "/validate")
ROUNDS, SECONDS = 5, 1.0
LEAST_SHARE = 0.6
NUM_BODIES = 200
"""Jobs that differ in name and uid, as those of a gang or a sweep do."""
START_SECONDS = 30


@dataclass(slots=True)
class Tally:
    """What one server did in all its turns."""

    num_answered: int = 0
    seconds: float = 0.0
    used: float = 0.0

    @property
    def rate(self) -> float:
        """Return answers a second."""
        return self.num_answered / self.seconds

    @property
    def used_ms(self) -> float:
        """Return the milliseconds of a processor that one answer took the server."""
        return 1000 * self.used / self.num_answered


async def throughput_figures() -> AsyncIterator[Figure]:
    """Yield the share of an echo's throughput that cached reviews have."""
    bodies = review_bodies()
    with tempfile.TemporaryDirectory(prefix="vramgate-bench-") as name:
        folder, port, echo_port = Path(name), free_port(), free_port()
        settings, bundle = write_settings(folder, port=port)
        log = folder / "webhook.log"
        context = ssl.create_default_context(cafile=str(bundle))
        with webhook(settings, log) as process:
            connector = aiohttp.TCPConnector(ssl=context)
            base = f"https://127.0.0.1:{port}"
            async with aiohttp.ClientSession(base, connector=connector) as session:
                await wait_until_ready(session, process, log)
                await ask(session, yaml.safe_load((EXAMPLES / "resnet50-b64.yaml").read_text()))
            for path in PATHS:
                request = request_of(f"{path}?timeout=5s", bodies[0], port=port)
                answer = post(request, port=port, context=context)
                (folder / f"{path[1:]}.json").write_bytes(answer)
            with _echo(folder, echo_port, context) as echo:
                servers = {port: process.pid, echo_port: echo.pid}
                for path in PATHS:
                    tallies = await asyncio.to_thread(_turns, servers, path, bodies, context)
                    yield _share(path, tallies[port], tallies[echo_port])


def review_bodies() -> list[bytes]:
    """Return reviews of one job under many names."""
    job = yaml.safe_load((EXAMPLES / "resnet50-b64.yaml").read_text())
    metadata = job["metadata"]
    names = (f"{metadata['name']}-{number}" for number in range(NUM_BODIES))
    named = ({**job, "metadata": {**metadata, "name": name}} for name in names)
    return [orjson.dumps(review_of(each)) for each in named]


def _turns(
    servers: dict[int, int], path: str, bodies: list[bytes], context: ssl.SSLContext
) -> dict[int, Tally]:
    """Return what each server did, by its port: one after the other, in several rounds."""
    tallies = {port: Tally() for port in servers}
    requests = {
        port: [request_of(f"{path}?timeout=5s", body, port=port) for body in bodies]
        for port in servers
    }
    for _ in range(ROUNDS):
        for port, pid in servers.items():
            before = used_seconds(pid)
            num, seconds = hammer(requests[port], port=port, context=context, seconds=SECONDS)
            tally = tallies[port]
            tally.num_answered += num
            tally.seconds += seconds
            tally.used += used_seconds(pid) - before
    return tallies


def _share(path: str, ours: Tally, echo: Tally) -> Figure:
    rates = f"{ours.rate:,.0f}/s of {echo.rate:,.0f}/s"
    used = f"{ours.used_ms:.2f} ms of a processor, the echo {echo.used_ms:.2f}"
    return Figure(
        name=f"cached {path}, throughput beside an aiohttp echo",
        value=ours.rate / echo.rate,
        unit="×",
        low=LEAST_SHARE,
        high=float("inf"),
        note=f"{rates}; {used}",
    )


@contextlib.contextmanager
def _echo(folder: Path, port: int, context: ssl.SSLContext) -> Iterator[subprocess.Popen[bytes]]:
    """Serve the bodies in *folder* until the block ends."""
    pair = [str(path) for path in _pair(folder)]
    command = [sys.executable, "-m", "tests.bench.echo", *pair, str(folder), str(port)]
    process = subprocess.Popen(command)
    try:
        ends = time.monotonic() + START_SECONDS
        request = request_of(PATHS[0], b"{}", port=port)
        while True:
            try:
                post(request, port=port, context=context)
                break
            except ConnectionRefusedError:
                if time.monotonic() > ends or process.poll() is not None:
                    raise
                time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait(timeout=START_SECONDS)


def _pair(folder: Path) -> tuple[Path, Path]:
    """Return certificate and key, as the settings in *folder* name them."""
    server = yaml.safe_load((folder / "settings.yaml").read_text())["server"]
    return Path(server["certFile"]), Path(server["keyFile"])


async def _print() -> None:
    async for figure in throughput_figures():
        holds = "yes" if figure.holds else "NO"
        sys.stdout.write(f"{figure.name}: {figure.measured} ({figure.note}): {holds}\n")


if __name__ == "__main__":
    asyncio.run(_print())
