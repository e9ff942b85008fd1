"""Where the processor time of a review goes: stages, and with `--functions` what takes most of it.

    server in this process, client in another -> milliseconds of a processor for one answer

Estimates are made up and remembered; all else is what `vramgate serve` runs. Processor time says
the same whatever else the machine does, more or less: a busy machine's caches are cold.
"""

from __future__ import annotations

import asyncio
import cProfile
import io
import logging
import multiprocessing
import pstats
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import yaml
from aiohttp import web
from rich.table import Table

from admission.capacity.classes import classes_of
from admission.codes import Mode
from admission.commands.serve import settle
from admission.config import LogFormat, LogLevel, ServerSettings
from admission.detect import load_parts
from admission.estimates import EstimatePool
from admission.handler import Handler
from admission.inventory import Inventory, read_nodes
from admission.logs import configure_logs
from admission.metrics import Metrics
from admission.policy_settings import PolicySettings
from admission.response import Answer, allowed
from admission.review import Route
from admission.server import Probes, Reviewer, WebhookServer
from deploy.demo import NODES, free_port, write_settings
from estimator.device import Device
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.units import GIB
from estimator.workers.api import Job, spec_of
from tests.bench.echo import application
from tests.bench.figures import console, machine
from tests.bench.hammer import hammer, request_of
from tests.bench.throughput import review_bodies
from tests.builders import estimate, fit

SECONDS = 2.0
NUM_NEW = 16_000
"""Reviews that differ in a label: none is answered from memory."""


class FakeWorkers:
    """Says that every job needs 6 GiB."""

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device."""
        return tuple(estimate(least=6 * GIB, card=card, spec=spec_of(job)) for card in devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return one fit a device."""
        return tuple(fit(largest_batch=spec.input.batch_size) for _ in devices)


class Constant:
    """Answers every review the same, unread."""

    async def answer(
        self, body: bytes, *, content_type: str, timeout_text: str | None, route: Route
    ) -> Answer:
        """Return that it is allowed."""
        del body, content_type, timeout_text, route
        return allowed("00000000-0000-0000-0000-000000000000")


class Bench:
    """Servers of this process, and a client in another."""

    def __init__(self, folder: Path, client: ProcessPoolExecutor) -> None:
        self._port = free_port()
        settings, self._bundle = write_settings(folder, port=self._port)
        server = yaml.safe_load(settings.read_text())["server"]
        self._pair = (server["certFile"], server["keyFile"])
        self._settings = ServerSettings.model_validate(server)
        self._client = client

    @asynccontextmanager
    async def serving(self, reviewer: Reviewer) -> AsyncIterator[None]:
        """Serve as `vramgate serve` does."""
        probes = Probes(
            not_ready=lambda: None, metrics=lambda: b"", certificate_loaded=lambda _: None
        )
        async with WebhookServer(self._settings, reviewer=reviewer, probes=probes).running():
            yield

    @asynccontextmanager
    async def echoing(self) -> AsyncIterator[None]:
        """Serve with aiohttp alone."""
        body = allowed("00000000-0000-0000-0000-000000000000").body
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._pair)
        app = application({"mutate": body, "validate": body})
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self._port, ssl_context=context).start()
        try:
            yield
        finally:
            await runner.cleanup()

    async def used(self, path: str, bodies: Sequence[bytes]) -> float:
        """Return the milliseconds of this process for one answer."""
        requests = [request_of(f"{path}?timeout=5s", body, port=self._port) for body in bodies]
        loop = asyncio.get_running_loop()
        half = len(requests) // 2

        async def hammered(part: Sequence[bytes]) -> int:
            told = (str(self._bundle), part, self._port, SECONDS)
            return await loop.run_in_executor(self._client, _hammered, *told)

        await hammered(requests[:half])
        before = time.process_time()
        num_answered = await hammered(requests[half:])
        return 1000 * (time.process_time() - before) / num_answered


def _hammered(bundle: str, requests: Sequence[bytes], port: int, seconds: float) -> int:
    """Return how many of *requests* were answered; runs in the client's process."""
    context = ssl.create_default_context(cafile=bundle)
    return hammer(requests, port=port, context=context, seconds=seconds)[0]


async def handler() -> Handler:
    """Return a handler of the example nodes."""
    inventory = Inventory(keep_seconds=0, namespaces_expected=False)
    inventory.set_nodes(read_nodes(NODES))
    await inventory.refresh()
    assert inventory.classes == classes_of(list(read_nodes(NODES).values()))
    metrics = Metrics()
    metrics.classes(inventory.classes)
    return Handler(
        policy=PolicySettings(mode=Mode.ENFORCE),
        cluster=inventory,
        pool=EstimatePool(FakeWorkers(), watcher=metrics),
        metrics=metrics,
    )


def _new_bodies() -> list[bytes]:
    """Return reviews of one job, each with a label of its own."""
    reviews = [orjson.loads(body) for body in review_bodies()]
    found = []
    for number in range(NUM_NEW):
        review = reviews[number % len(reviews)]
        review["request"]["object"]["metadata"]["labels"] = {"run": str(number)}
        found.append(orjson.dumps(review))
    return found


async def _stages(bench: Bench, stage: Callable[[str, float], None]) -> None:
    known, new = review_bodies(), _new_bodies()
    async with bench.echoing():
        stage(
            "aiohttp alone: TLS, HTTP, an answer that is given", await bench.used("/mutate", known)
        )
    async with bench.serving(Constant()):
        stage("our server, an answer that is given", await bench.used("/mutate", known))
    async with bench.serving(await handler()):
        for path in ("/mutate", "/validate"):
            stage(f"{path}: a review like one before", await bench.used(path, known))
            stage(f"{path}: estimates remembered, answer made", await bench.used(path, new))


async def _functions(bench: Bench, path: str) -> str:
    profile = cProfile.Profile()
    async with bench.serving(await handler()):
        await bench.used(path, review_bodies())
        profile.enable()
        await bench.used(path, review_bodies())
        profile.disable()
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(40)
    return text.getvalue()


def main() -> None:
    """Measure and print."""
    screen = console()
    screen.print(machine(), soft_wrap=True)
    load_parts()
    table = Table("stage", "ms of a processor for one review")
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(prefix="vramgate-bench-") as name,
        Path(name, "log").open("w") as log,
        ProcessPoolExecutor(1, mp_context=spawn) as client,
    ):
        configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=log)
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        bench = Bench(Path(name), client)
        settle()
        if sys.argv[1:2] == ["--functions"]:
            screen.print(asyncio.run(_functions(bench, *sys.argv[2:])), markup=False)
            return
        asyncio.run(_stages(bench, lambda stage, used: table.add_row(stage, f"{used:.3f}")))
    screen.print(table)


if __name__ == "__main__":
    main()
