"""Forks and the cuDNN process beside them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from estimator.workers.pool import Workers
from tests.estimator.cudnn.cases import FOLDER, RELEASE
from tests.estimator.workers.cases import CARD, spec_of, state_of, workers_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cudnn_workers() -> AsyncIterator[Workers]:
    """A pool of stand-ins with the real library beside it."""
    pool = workers_of(cudnn=[FOLDER])
    yield pool
    await pool.close()


async def _asked(workers: Workers, framework: str = "pytorch") -> Any:
    """Return what a fork heard of cuDNN."""
    (estimate,) = await workers.estimate(spec_of("ask-cudnn", framework=framework), [CARD])
    return json.loads(estimate.warnings[0])


async def test_a_fork_asks_the_library(cudnn_workers: Workers) -> None:
    """A confined fork has its connection, and two descriptors of sockets in all."""
    asked = await _asked(cudnn_workers)

    assert asked["version"] == RELEASE
    assert asked["plans"] > 0
    assert asked["reason"] is None
    (estimate,) = await cudnn_workers.estimate(spec_of("surroundings"), [CARD])
    assert json.loads(estimate.warnings[0])["sockets"] == 2


async def test_forks_of_other_frameworks_have_none(cudnn_workers: Workers) -> None:
    """Only PyTorch's convolutions are asked about."""
    assert await _asked(cudnn_workers, "jax") is None


async def test_a_pool_without_a_library_goes_on_without() -> None:
    """Nothing is installed: a fork has nobody to ask."""
    pool = workers_of(cudnn=[])

    assert await _asked(pool) is None
    await pool.close()


async def test_a_library_that_does_not_load_is_a_reason(tmp_path: Path) -> None:
    """The estimate comes all the same; the fork knows nothing of plans, and why, or has nobody."""
    pool = workers_of(cudnn=[tmp_path])

    asked = await _asked(pool)

    assert asked is None or (asked["plans"] is None and "ended" in asked["reason"])
    await pool.close()


async def test_close_ends_the_process_of_the_library() -> None:
    """The process is counted among the pool's, and gone when `close` returns."""
    pool = workers_of(cudnn=[FOLDER])
    await _asked(pool)
    pids = pool.pids()

    await pool.close()

    assert len(pids) >= 2
    assert {state_of(pid) for pid in pids} == {""}
