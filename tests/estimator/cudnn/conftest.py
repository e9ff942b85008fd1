"""A cuDNN process with the real library, shared by a module, and connections to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import pytest_asyncio

from estimator.cudnn.client import Plans
from estimator.workers.cudnn_supervisor import CudnnSupervisor
from estimator.workers.limits import Limits
from tests.estimator.cudnn.cases import FOLDER

PATIENCE = 60.0
"""Seconds a test's connection waits: long enough for any machine."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def supervisor() -> AsyncIterator[CudnnSupervisor]:
    """The process of the wheel's library; it is watched closely."""
    keeper = CudnnSupervisor(FOLDER, limits=Limits(kill_seconds=0.1))
    yield keeper
    await keeper.close()


@pytest.fixture
def connect(supervisor: CudnnSupervisor) -> Iterator[Callable[[], Plans]]:
    """Connect to the process, which is started if necessary."""
    opened: list[Plans] = []

    def connection() -> Plans:
        ours = supervisor.connect()
        assert ours is not None
        opened.append(Plans(ours, limit_seconds=PATIENCE))
        return opened[-1]

    yield connection
    for plans in opened:
        plans.close()
