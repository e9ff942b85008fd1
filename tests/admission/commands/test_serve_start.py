"""`serve` is ready before its estimator is: what is asked meanwhile is late, and judged later."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from admission.commands import serve as serving
from admission.config import Settings, load_settings
from deploy.demo import EXAMPLES, free_port, review_of, write_settings
from estimator.device import Device
from estimator.result import Estimate
from estimator.spec import Framework
from estimator.units import GIB
from estimator.workers.api import Job, spec_of
from estimator.workers.pool import Workers
from tests.builders import estimate

STUCK = "tests.estimator.workers.standin:prepare_stuck"
"""A template that imports its framework for ever."""


class Warming(Workers):
    """Workers whose template is not there yet; answers wait until it is said to be."""

    def __init__(self) -> None:
        super().__init__(prepare=STUCK, preload=(Framework.PYTORCH,), cudnn=())
        self.are_warm = asyncio.Event()

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return 2 GiB for each device, once the workers are warm."""
        await self.are_warm.wait()
        return tuple(estimate(least=2 * GIB, card=card, spec=spec_of(job)) for card in devices)


@contextlib.asynccontextmanager
async def served(
    folder: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[aiohttp.ClientSession]:
    """Run `serve` with *workers* until the block ends; give a client once it listens."""
    port = free_port()
    file, bundle = write_settings(folder, port=port)
    made: Callable[[Settings], Workers] = lambda _: workers  # noqa: E731 (typed)
    monkeypatch.setattr(serving, "workers_of", made)
    monkeypatch.setattr(serving, "settle", lambda: None)
    monkeypatch.setattr(serving, "SWITCH_SECONDS", 0.005)
    running = asyncio.create_task(serving.serve(load_settings(file), kubeconfig=None))
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(bundle)))
    try:
        async with aiohttp.ClientSession(
            f"https://127.0.0.1:{port}", connector=connector
        ) as client:
            while not await _listens(client):
                assert not running.done(), running.exception()
                await asyncio.sleep(0.01)
            yield client
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _listens(client: aiohttp.ClientSession) -> bool:
    try:
        async with client.get("/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientConnectionError:
        return False


async def reason_of(client: aiohttp.ClientSession, *, within: str) -> tuple[bool, Any]:
    """Return whether an example job is allowed, and why."""
    job = yaml.safe_load((EXAMPLES / "resnet50-b64.yaml").read_text())
    async with client.post(f"/validate?timeout={within}", json=review_of(job)) as answer:
        response = (await answer.json())["response"]
    return response["allowed"], response["auditAnnotations"]["reason"]


async def test_ready_does_not_wait_for_the_estimator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The template never has its framework: reviews are answered, late, and nothing is denied."""
    workers = Warming()
    async with served(tmp_path, workers, monkeypatch) as client:
        assert workers.states()["idle-template"] == 0

        assert await reason_of(client, within="550ms") == (True, "late")
        async with client.get("/readyz") as answer:
            assert answer.status == 200


async def test_what_was_asked_before_the_estimator_was_there_is_judged_once_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The late question goes on: its answer is in the cache for the next review."""
    workers = Warming()
    async with served(tmp_path, workers, monkeypatch) as client:
        assert await reason_of(client, within="550ms") == (True, "late")

        waiting = asyncio.create_task(reason_of(client, within="30s"))
        workers.are_warm.set()

        assert await waiting == (True, "fits")
        assert await reason_of(client, within="5s") == (True, "fits")
