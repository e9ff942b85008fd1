"""Pools of stand-in workers, closed after each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from estimator.workers.limits import Limits
from estimator.workers.pool import Workers
from tests.estimator.workers.cases import workers_of


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    """Two workers at once, with the usual limits."""
    pool = workers_of()
    yield pool
    await pool.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_workers() -> AsyncIterator[Workers]:
    """The same for a whole module: what one fork does is no matter to the next."""
    pool = workers_of()
    yield pool
    await pool.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hasty_workers() -> AsyncIterator[Workers]:
    """Workers with half a second for an estimate."""
    pool = workers_of(Limits(wall_seconds=0.5, kill_seconds=0.1))
    yield pool
    await pool.close()
