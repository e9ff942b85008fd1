"""A fork that answered goes on for the next batch of its job, and is in nobody's way."""

from __future__ import annotations

import asyncio
import json

import pytest

from estimator.spec import JobSpec
from estimator.workers.limits import Limits
from estimator.workers.pool import Workers
from tests.estimator.workers.cases import CARD, is_process, spec_of, until, workers_of

LACKS = "estimator workers are not isolated"
"""Also logged, where the kernel has no Landlock."""


def is_idle(pool: Workers) -> bool:
    """Return whether *pool* has its template only."""
    return len(pool.pids()) == 1


async def kept_by(pool: Workers, spec: JobSpec) -> list[str]:
    """Return what was kept of *spec* when it is asked about again."""
    (estimate,) = await pool.estimate(spec, [CARD])
    kept: list[str] = json.loads(estimate.warnings[0])
    return kept


async def test_what_a_fork_traces_afterwards_is_there_for_the_next(workers: Workers) -> None:
    """The answer comes first; the next fork of the job is given what was traced since."""
    assert await kept_by(workers, spec_of("go-on")) == []
    await until(lambda: is_idle(workers))

    first = await kept_by(workers, spec_of("go-on", batch_size=2))
    other = await kept_by(workers, spec_of("go-on", framework="jax"))

    assert len(first) == 1
    assert other == []


async def test_nobody_waits_for_a_fork_that_goes_on(workers: Workers) -> None:
    """It has no slot, is counted nowhere, and ends once somebody asks."""
    await workers.estimate(spec_of("go-on-and-wait"), [CARD])
    await until(lambda: workers.states()["busy"] == 0)
    _, spare = workers.pids()
    states = workers.states()

    await workers.estimate(spec_of("nothing"), [CARD])

    assert states["idle-template"] == 1
    await until(lambda: is_idle(workers))
    assert not is_process(spare)


async def test_no_fork_goes_on_while_others_are_asked(workers: Workers) -> None:
    """With one at work the next ends when it has answered."""
    busy = asyncio.create_task(workers.estimate(spec_of("wait"), [CARD]))
    await until(lambda: workers.states()["busy"] == 1)

    await workers.estimate(spec_of("go-on-and-wait"), [CARD])

    await until(lambda: len(workers.pids()) == 2)
    busy.cancel()
    await asyncio.wait([busy])


async def test_with_one_slot_no_fork_goes_on() -> None:
    """There may be one processor."""
    pool = workers_of(max_concurrent=1)

    await kept_by(pool, spec_of("go-on"))
    await until(lambda: is_idle(pool))

    assert await kept_by(pool, spec_of("go-on")) == []
    await pool.close()


async def test_a_fork_that_goes_on_too_long_ends(caplog: pytest.LogCaptureFixture) -> None:
    """By the pool: it can set no timer itself any more."""
    pool = workers_of(Limits(spare_seconds=0.05))

    await pool.estimate(spec_of("go-on-and-wait"), [CARD])

    await until(lambda: is_idle(pool))
    (record,) = (each for each in caplog.records if each.message != LACKS)
    assert (record.__dict__["status"], record.__dict__["overdue"]) == (-9, True)
    await pool.close()


async def test_a_bug_of_ours_afterwards_is_logged(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    """And what came before it is kept."""
    await workers.estimate(spec_of("go-on-and-fail"), [CARD])
    await until(lambda: is_idle(workers))

    (record,) = (each for each in caplog.records if each.message != LACKS)
    assert "KeyError: 'a bug'" in record.__dict__["words"]
    assert await kept_by(workers, spec_of("go-on-and-fail")) == ["first"]


async def test_close_ends_a_fork_that_goes_on(workers: Workers) -> None:
    """No process is left."""
    await workers.estimate(spec_of("go-on-and-wait"), [CARD])
    pids = workers.pids()

    await workers.close()

    assert len(pids) == 2
    assert not any(is_process(pid) for pid in pids)
