"""Templates and forks over time: start, crash, restart, cancel, close."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from estimator.device import Device
from estimator.errors import (
    EstimateTimeoutError,
    EstimatorUnavailableError,
    MemoryLimitError,
    TraceError,
    UnsupportedJobError,
)
from estimator.notes import UnknownCode
from estimator.spec import Framework
from estimator.workers.limits import Limits
from estimator.workers.pool import Workers
from tests.estimator.workers.cases import (
    CARD,
    STANDIN,
    children_of,
    is_process,
    marks,
    spec_of,
    state_of,
    until,
    workers_of,
)


async def test_there_is_one_estimate_a_device_in_order(workers: Workers) -> None:
    """The answer holds the devices as they were asked for, and the spec with its digest."""
    spec = spec_of("nothing")
    other = Device(
        name="other",
        total_bytes=None,
        reservation_bytes=0,
        budget_bytes=None,
        compute_capability=(9, 0),
    )

    estimates = await workers.estimate(spec, [CARD, other])

    assert [estimate.device.name for estimate in estimates] == ["card", "other"]
    assert {estimate.spec_digest for estimate in estimates} == {spec.digest()}


async def test_fit_is_asked_the_same_way(workers: Workers) -> None:
    """A fit comes from a fork too."""
    (fit,) = await workers.fit(spec_of("nothing"), [CARD])

    assert fit.largest_batch == 7


async def test_each_request_has_its_own_fork(workers: Workers) -> None:
    """Two requests are answered by two processes, neither of them this one."""
    spec = spec_of("pid")

    pids = [(await workers.estimate(spec, [CARD]))[0].warnings[0] for _ in range(2)]

    assert len({*pids, str(os.getpid())}) == 3


async def test_requests_run_at_the_same_time(workers: Workers, tmp_path: Path) -> None:
    """Two forks that wait for each other both answer."""
    spec = spec_of("meet", config={"folder": str(tmp_path)}, batch_size=2)

    await asyncio.gather(workers.estimate(spec, [CARD]), workers.estimate(spec, [CARD]))

    assert len(marks(tmp_path)) == 2


async def test_no_more_run_at_the_same_time_than_allowed(tmp_path: Path) -> None:
    """With one slot the second request waits until the first fork has ended."""
    pool = workers_of(max_concurrent=1)
    spec = spec_of("wait", config={"folder": str(tmp_path)})
    first, second = (asyncio.create_task(pool.estimate(spec, [CARD])) for _ in range(2))
    await until(lambda: pool.states()["busy"] == 1 and pool.states()["waiting"] == 1)
    await until(lambda: len(marks(tmp_path)) == 1)

    os.kill(marks(tmp_path)[0], signal.SIGKILL)
    await asyncio.wait([first])

    await until(lambda: len(marks(tmp_path)) == 2)
    assert pool.states()["waiting"] == 0
    await pool.close()
    assert isinstance(first.exception(), MemoryLimitError)
    (closed,) = await asyncio.gather(second, return_exceptions=True)
    assert isinstance(closed, EstimatorUnavailableError)


async def test_a_killed_template_is_started_again(workers: Workers) -> None:
    """The request after a template's death is answered by a new one."""
    await workers.ready(Framework.PYTORCH)
    (old,) = workers.pids()

    os.kill(old, signal.SIGKILL)

    assert await workers.estimate(spec_of("nothing"), [CARD])
    (new,) = workers.pids()[:1]
    assert new != old
    assert not is_process(old)


async def test_a_request_survives_the_death_of_its_template(
    workers: Workers, tmp_path: Path
) -> None:
    """A request whose template dies under it is asked again, once; its old fork dies."""
    spec = spec_of("wait", config={"folder": str(tmp_path)})
    task = asyncio.create_task(workers.estimate(spec, [CARD]))
    await until(lambda: len(marks(tmp_path)) == 1)
    first = marks(tmp_path)[0]

    os.kill(workers.pids()[0], signal.SIGKILL)
    await until(lambda: len(marks(tmp_path)) == 2)
    os.kill(workers.pids()[0], signal.SIGKILL)

    with pytest.raises(EstimatorUnavailableError, match="ended before it answered"):
        await task
    await until(lambda: not is_process(first))


async def test_a_template_that_keeps_dying_is_left_alone_for_a_while() -> None:
    """After two ends in a row a request fails at once and says when the next start may be."""
    pool = workers_of(prepare="prepare_crashing")
    for _ in range(2):
        with pytest.raises(EstimatorUnavailableError, match=r"did not start \(signal 11\)"):
            await pool.estimate(spec_of("nothing"), [CARD])

    with pytest.raises(EstimatorUnavailableError, match="keeps ending"):
        await pool.estimate(spec_of("nothing"), [CARD])

    assert pool.states()["dead"] == 1
    await pool.close()


async def test_a_broken_framework_is_our_fault(caplog: pytest.LogCaptureFixture) -> None:
    """A template that fails to import says why in one line, in the error and in the log."""
    pool = workers_of(prepare="prepare_broken")

    with pytest.raises(TraceError) as caught:
        await pool.estimate(spec_of("nothing"), [CARD])

    reason = "ValueError: a library of the wrong version"
    assert caught.value.message == f"the pytorch frontend does not start: {reason}"
    (record,) = (record for record in caplog.records if record.message == "template failed")
    assert record.levelname == "ERROR"
    assert (record.__dict__["framework"], record.__dict__["error"]) == (
        "pytorch",
        caught.value.message,
    )
    await pool.close()


async def test_a_ready_template_is_logged(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    """With the framework, how long it took and what it holds."""
    caplog.set_level("INFO", "estimator")

    await workers.ready(Framework.PYTORCH)

    (record,) = (record for record in caplog.records if record.message == "template ready")
    assert record.levelname == "INFO"
    assert record.__dict__["framework"] == "pytorch"
    assert record.__dict__["seconds"] >= 0
    assert record.__dict__["rss_bytes"] > 0


async def test_a_missing_framework_is_not_tried_again() -> None:
    """A framework that is not installed is unsupported, with the way to install it."""
    pool = workers_of(prepare="prepare_missing")
    for _ in range(3):
        with pytest.raises(UnsupportedJobError) as caught:
            await pool.estimate(spec_of("nothing"), [CARD])
        await until(lambda: not pool.pids())

        assert caught.value.code is UnknownCode.FRAMEWORK
        assert caught.value.hint == "pip install 'vramgate[torch]'"

    assert pool.states()["dead"] == 0
    await pool.close()


async def test_a_template_that_never_gets_ready_is_ended() -> None:
    """A start has a limit of its own."""
    pool = workers_of(Limits(start_seconds=0.5), prepare="prepare_stuck")

    with pytest.raises(EstimatorUnavailableError, match=r"did not start within 0\.5 s"):
        await pool.ready(Framework.PYTORCH)

    await until(lambda: not pool.pids())
    await pool.close()


async def test_templates_are_preloaded_without_waiting() -> None:
    """`start` begins what is to be preloaded and returns."""
    pool = Workers(
        Limits(kill_seconds=0.1),
        preload=[Framework.PYTORCH],
        prepare=f"{STANDIN}:prepare_stuck",
        cudnn=(),
    )

    await pool.start()

    assert pool.states() == {
        "starting": 1,
        "idle-template": 0,
        "busy": 0,
        "waiting": 0,
        "dead": 0,
    }
    (pid,) = pool.pids()
    await pool.close()
    assert not is_process(pid)


async def test_each_framework_has_its_own_template(workers: Workers) -> None:
    """Requests of two frameworks do not share a process."""
    await workers.estimate(spec_of("nothing", framework="pytorch"), [CARD])
    await workers.estimate(spec_of("nothing", framework="jax"), [CARD])

    await until(lambda: workers.states()["busy"] == 0)
    assert workers.states()["idle-template"] == 2
    assert len(workers.pids()) == 2


async def test_a_fork_goes_on_when_its_caller_is_cancelled(
    workers: Workers, tmp_path: Path
) -> None:
    """Nobody waits any more, and the fork still runs."""
    spec = spec_of("wait", config={"folder": str(tmp_path)})
    task = asyncio.create_task(workers.estimate(spec, [CARD]))
    await until(lambda: len(marks(tmp_path)) == 1)

    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert is_process(marks(tmp_path)[0])
    assert workers.states()["busy"] == 1


async def test_close_leaves_no_process(workers: Workers, tmp_path: Path) -> None:
    """Template and forks are gone when `close` returns, and what waited for them has failed."""
    spec = spec_of("wait", config={"folder": str(tmp_path)})
    tasks = [asyncio.create_task(workers.estimate(spec, [CARD])) for _ in range(2)]
    await until(lambda: len(workers.pids()) == 3)
    pids = workers.pids()

    await workers.close()

    assert [state_of(pid) for pid in pids] == ["", "", ""]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(result) for result in results] == ["the estimator is shutting down"] * 2


async def test_close_ends_a_template_that_does_not_listen() -> None:
    """A stopped template is killed, and its forks die with it."""
    pool = workers_of(Limits(kill_seconds=0.1))
    await pool.ready(Framework.PYTORCH)
    (pid,) = pool.pids()
    os.kill(pid, signal.SIGSTOP)

    await pool.close()

    assert state_of(pid) == ""


async def test_a_request_to_a_stopped_template_is_a_timeout() -> None:
    """A template that does not fork in time is ended, and the request fails by its limit."""
    pool = workers_of(Limits(wall_seconds=0.2, kill_seconds=0.1))
    await pool.ready(Framework.PYTORCH)
    os.kill(pool.pids()[0], signal.SIGSTOP)

    with pytest.raises(EstimateTimeoutError, match=r"longer than its 0\.2 s"):
        await pool.estimate(spec_of("nothing"), [CARD])

    assert await pool.estimate(spec_of("nothing"), [CARD])
    await pool.close()


async def test_a_closed_pool_refuses_requests(workers: Workers) -> None:
    """Nothing is started after `close`."""
    await workers.close()

    with pytest.raises(EstimatorUnavailableError, match="shutting down"):
        await workers.estimate(spec_of("nothing"), [CARD])


async def test_ended_forks_are_reaped(workers: Workers) -> None:
    """A template keeps no zombies."""
    for _ in range(3):
        await workers.estimate(spec_of("nothing"), [CARD])
    (template, *_) = workers.pids()

    await until(lambda: workers.states()["busy"] == 0)

    assert children_of(template) == ()


_PARENT = """
import asyncio
from estimator.spec import Framework
from tests.estimator.workers.cases import CARD, spec_of, workers_of, until

async def main():
    workers = workers_of()
    await workers.ready(Framework.PYTORCH)
    task = asyncio.create_task(workers.estimate(spec_of("wait"), [CARD]))
    await until(lambda: len(workers.pids()) == 2)
    print(*workers.pids(), flush=True)
    await task

asyncio.run(main())
"""


def _killed_parent() -> tuple[int, ...]:
    """Return the processes of a pool whose own process was killed."""
    command = [sys.executable, "-c", _PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = tuple(int(word) for word in parent.stdout.readline().split())
        parent.kill()
    return pids


async def test_templates_and_forks_die_with_their_parent() -> None:
    """When the process that started them is killed, nothing of it stays."""
    pids = _killed_parent()

    assert len(pids) == 2
    await until(lambda: not any(is_process(pid) for pid in pids))


_FRAMEWORKS = ("torch", "tensorflow", "jax", "mxnet", "numpy")


def test_the_pool_imports_no_framework() -> None:
    """The process that answers reviews imports no framework."""
    names = f"[name for name in {_FRAMEWORKS} if name in sys.modules]"
    code = f"import sys, estimator.workers.pool; print({names})"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
