"""A system that has no process, no descriptor or no memory left says nothing of the job."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from estimator.errors import EstimatorUnavailableError, MemoryLimitError
from estimator.spec import Framework
from estimator.workers.pool import Workers
from tests.estimator.workers.cases import CARD, is_process, marks, spec_of, until, workers_of
from tests.faults.limits import descriptors_of, no_more_descriptors


async def _answers(pool: Workers) -> bool:
    """Return whether every slot of *pool* is there to answer."""
    asked = [pool.estimate(spec_of("nothing"), [CARD]) for _ in range(pool.max_concurrent + 1)]
    return all(await asyncio.gather(*asked))


async def test_a_fork_that_the_system_refuses_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    """EAGAIN, as at a limit on processes: tried once more, and the template lives on."""
    pool = workers_of(prepare="prepare_without_processes", max_concurrent=1)
    await pool.ready(Framework.PYTORCH)
    (template,) = pool.pids()

    assert await pool.estimate(spec_of("nothing"), [CARD])

    assert pool.pids()[:1] == (template,)
    (line,) = (each for each in caplog.records if each.message == "estimator worker failed")
    assert line.__dict__["words"] == "resource temporarily unavailable"
    await pool.close()


@pytest.mark.parametrize("spare", [0, 1, 2])
async def test_a_template_without_descriptors_lives_on(workers: Workers, spare: int) -> None:
    """EMFILE where it takes the request, or makes the pipe: told as such, over once there are."""
    await workers.ready(Framework.PYTORCH)
    (template,) = workers.pids()

    with (
        descriptors_of(template, spare=spare),
        pytest.raises(EstimatorUnavailableError, match="too many open files"),
    ):
        await workers.estimate(spec_of("nothing"), [CARD])

    assert await _answers(workers)
    assert workers.pids()[:1] == (template,)


async def test_a_pool_without_descriptors_keeps_its_template_and_its_slots(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    """EMFILE in the process that answers reviews: the estimate fails at once, nothing is lost."""
    await workers.ready(Framework.PYTORCH)
    (template,) = workers.pids()

    with no_more_descriptors():
        for _ in range(workers.max_concurrent + 1):
            with pytest.raises(EstimatorUnavailableError, match="too many open files"):
                await workers.estimate(spec_of("nothing"), [CARD])

    assert await _answers(workers)
    assert workers.pids()[:1] == (template,)
    assert "estimator worker not started" in caplog.messages


async def test_a_template_that_cannot_be_started_is_tried_again() -> None:
    """No descriptor for it: unavailable now, and there for the next request."""
    pool = workers_of()
    with no_more_descriptors():
        with pytest.raises(EstimatorUnavailableError, match="too many open files"):
            await pool.estimate(spec_of("nothing"), [CARD])
        assert pool.pids() == ()

    assert await _answers(pool)
    await pool.close()


async def test_a_library_that_cannot_be_started_is_gone_without(tmp_path: Path) -> None:
    """No descriptor for the process of a cuDNN: nothing is raised, and no worker is lost."""
    pool = workers_of(cudnn=[tmp_path])
    await pool.ready(Framework.PYTORCH)

    with no_more_descriptors(), pytest.raises(EstimatorUnavailableError):
        await pool.estimate(spec_of("nothing"), [CARD])

    assert await _answers(pool)
    await pool.close()


async def test_a_fork_that_is_killed_from_outside_ran_out_of_memory(
    workers: Workers, tmp_path: Path
) -> None:
    """SIGKILL that we did not send is mostly the kernel's, for a container without memory."""
    spec = spec_of("wait", config={"folder": str(tmp_path)})
    task = asyncio.create_task(workers.estimate(spec, [CARD]))
    await until(lambda: len(marks(tmp_path)) == 1)
    (fork,) = marks(tmp_path)

    os.kill(fork, signal.SIGKILL)

    with pytest.raises(MemoryLimitError, match=r"from outside \(signal 9\)") as caught:
        await task
    assert caught.value.hint is not None
    assert "out of memory" in caught.value.hint
    assert await _answers(workers)
    assert not is_process(fork)
