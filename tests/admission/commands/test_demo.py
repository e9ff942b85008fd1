"""The demo's own few lines: when it stops, and what it says of a warned job."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from deploy.demo import Answer, num_workers, wait_until_ready, warned_lines

DEAD = 'vramgate_estimator_workers{state="dead"} 1.0\n'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log that ends with the reason."""
    file = tmp_path / "webhook.log"
    file.write_text("ImportError: no torch\n")
    return file


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that goes on."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process


@pytest.fixture
def ended() -> subprocess.Popen[bytes]:
    """Return a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(2)"])
    process.wait()
    return process


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """Return a session with a webhook whose template is dead."""

    async def not_ready(_: web.Request) -> web.Response:
        return web.Response(status=503)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=DEAD)

    app = web.Application()
    app.router.add_get("/readyz", not_ready)
    app.router.add_get("/metrics", metrics)
    async with TestServer(app) as server, aiohttp.ClientSession(server.make_url("/")) as session:
        yield session


async def test_dead_template_stops_the_demo_with_the_end_of_the_log(
    session: aiohttp.ClientSession, sleeper: subprocess.Popen[bytes], log: Path
) -> None:
    """Nobody waits two minutes for a framework that cannot be imported."""
    with pytest.raises(SystemExit, match="template ended:\nImportError: no torch"):
        await wait_until_ready(session, sleeper, log)


async def test_webhook_that_ended_stops_the_demo_with_the_end_of_the_log(
    session: aiohttp.ClientSession, ended: subprocess.Popen[bytes], log: Path
) -> None:
    """Its status is told too."""
    with pytest.raises(SystemExit, match="ended with status 2:\nImportError: no torch"):
        await wait_until_ready(session, ended, log)


def test_workers_are_counted_by_state() -> None:
    """A state that is not there counts as none."""
    assert (num_workers(DEAD, "dead"), num_workers(DEAD, "idle-template")) == (1, 0)


def test_first_warning_of_each_warned_job_is_one_line() -> None:
    """A denied job is told in full below, an allowed one needs no word."""
    answers = [
        Answer(name=f"Job/{name}", allowed=allowed, message="", warnings=warnings, facts={})
        for name, allowed, warnings in (
            ("a", True, ()),
            ("b", True, ("may run out", "hint: x")),
            ("c", False, ("conflict",)),
        )
    ]

    assert warned_lines(answers) == ["Job/b: may run out"]
