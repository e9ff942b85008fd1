"""Faults of the machine under a running `vramgate serve`: it answers what it was asked."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import orjson
import pytest
import pytest_asyncio

from tests.admission.test_handler import job, review_of
from tests.admission.test_server import HIDDEN, WAIT_SECONDS, Served, post, session_for, until
from tests.faults.limits import descriptors_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANY = 16
"""Connections more than the server has descriptors for."""
REVIEWS = 400
"""Their log lines are more than a pipe holds: 0.3 KiB each, and 64 KiB."""


@dataclass(frozen=True, kw_only=True)
class Running:
    """A process that serves, and a client that has a connection to it."""

    served: Served
    process: asyncio.subprocess.Process
    session: aiohttp.ClientSession

    @property
    def url(self) -> str:
        """Return where reviews go."""
        return f"https://localhost:{self.served.port}/validate"

    def events(self) -> list[str]:
        """Return what was logged so far."""
        return [line["event"] for line in self.served.lines]

    async def answers(self, uid: str) -> bool:
        """Return whether a review is answered, over the connection there is."""
        status, body = await post(self.session, self.url, review_of(job(gpus=0), uid=uid))
        return bool(status == 200 and orjson.loads(body)["response"]["uid"] == uid)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """One process for all: none of these faults ends it."""
    served = Served(tmp_path_factory.mktemp("served"))
    async with served.running() as process, session_for(served.authority) as session:
        found = Running(served=served, process=process, session=session)
        assert await found.answers("first")
        yield found


@pytest.mark.skipif(os.getuid() != 0, reason=HIDDEN)
async def test_connections_beyond_the_descriptors_wait_and_cost_nobody(running: Running) -> None:
    """EMFILE at accept: open connections are served, a line tells of each try, all get in later."""
    url = f"https://localhost:{running.served.port}/healthz"

    def refused() -> list[str]:
        return [line["event"] for line in running.served.lines if line.get("logger") == "asyncio"]

    async def ask() -> int:
        async with session_for(running.served.authority) as session, session.get(url) as answer:
            return answer.status

    with descriptors_of(running.process.pid, spare=2):
        asking = [asyncio.create_task(ask()) for _ in range(MANY)]
        await until(lambda: bool(refused()))
        assert all([await running.answers(f"meanwhile-{number}") for number in range(20)])
        num_refused = len(refused())
    statuses = await asyncio.gather(*asking)

    assert statuses == [200] * MANY
    assert refused()[0].startswith("socket.accept() out of system resource")
    assert num_refused < 64, "one for each that waits would be a thousand, with a traceback each"


async def test_disk_that_hangs_holds_up_no_review(running: Running) -> None:
    """Whoever reads the settings waits for ever; reviews and probes do not wait for it."""
    pipe = running.served.directory / "pipe"
    os.mkfifo(pipe)
    pipe.rename(running.served.settings)

    async def writing() -> int:
        while True:
            with suppress(OSError):  # ENXIO: nobody reads yet
                return os.open(running.served.settings, os.O_WRONLY | os.O_NONBLOCK)
            await asyncio.sleep(0.01)

    async with asyncio.timeout(WAIT_SECONDS):
        descriptor = await writing()
    assert all([await running.answers(f"slow-{number}") for number in range(20)])
    async with running.session.get(f"https://localhost:{running.served.port}/readyz") as answer:
        assert answer.status == 200
    os.close(descriptor)


async def test_hangup_ends_nothing(running: Running) -> None:
    """SIGHUP, as from a terminal that closes or whoever wants a reload."""
    running.process.send_signal(signal.SIGHUP)

    await until(lambda: "hangup ignored" in running.events())
    assert await running.answers("after")


async def test_reviews_are_answered_though_nobody_reads_the_log(tmp_path: Path) -> None:
    """A pipe that is full holds up no review; what was lost is told once it is read again."""
    served = Served(tmp_path)
    async with served.running(holds_log=True) as process, session_for(served.authority) as session:
        running = Running(served=served, process=process, session=session)
        assert all([await running.answers(f"review-{number}") for number in range(REVIEWS)])

        served.may_read.set()
        await until(lambda: "reviewed" in running.events())
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), WAIT_SECONDS) == 0

    lost = [line["lines"] for line in served.lines if line["event"] == "log lines lost"]
    assert sum(lost) + running.events().count("reviewed") == REVIEWS
    assert running.events()[-1] == "stopped"


async def test_who_is_told_to_stop_at_once_stops_in_order(tmp_path: Path) -> None:
    """The moment it listens it may have a review: from then on no signal ends it on the spot."""
    served = Served(tmp_path)
    async with served.running() as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        status = await asyncio.wait_for(process.wait(), WAIT_SECONDS)

    assert status == 0
    assert [line["event"] for line in served.lines][-2:] == ["draining", "stopped"]
