"""What a fork may not do, and what its end is called."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    MemoryLimitError,
    SpecError,
    TraceError,
    UnsupportedJobError,
)
from estimator.notes import UnknownCode
from estimator.spec import Framework
from estimator.workers.pool import Workers
from tests.estimator.workers.cases import CARD, spec_of, until, workers_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _seen(workers: Workers, action: str, **config: object) -> str:
    """Return what a fork that does *action* saw."""
    (estimate,) = await workers.estimate(spec_of(action, config=config), [CARD])
    return estimate.warnings[0]


@pytest.mark.parametrize("action", ["wait", "spin", "escape", "stick-in-c"])
async def test_a_fork_that_takes_too_long_is_a_timeout(hasty_workers: Workers, action: str) -> None:
    """A sleeping fork, a computing one, one without a timer, one in C code: the next is served."""
    with pytest.raises(EstimateTimeoutError, match=r"longer than its 0\.5 s"):
        await hasty_workers.estimate(spec_of(action), [CARD])

    assert await _seen(hasty_workers, "pid")


@pytest.mark.parametrize(
    "action", ["allocate", "fill", "allocate-in-library", "abort-out-of-memory"]
)
async def test_a_fork_that_takes_too_much_memory_is_a_memory_error(
    shared_workers: Workers, action: str
) -> None:
    """One large piece, many small ones, a library's error and a C++ abort are no bugs."""
    with pytest.raises(MemoryLimitError, match="more than its 3072 MiB"):
        await shared_workers.estimate(spec_of(action), [CARD])

    assert await _seen(shared_workers, "pid")


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("abort", "the estimator worker ended unexpectedly (signal 6)"),
        ("bug", "the estimator failed with a KeyError"),
    ],
)
async def test_a_fork_that_fails_is_our_bug(
    shared_workers: Workers, action: str, message: str
) -> None:
    """A crash and an unexpected exception are trace errors without a stack trace."""
    with pytest.raises(TraceError) as caught:
        await shared_workers.estimate(spec_of(action), [CARD])

    assert caught.value.message == message
    assert await _seen(shared_workers, "pid")


async def test_the_traceback_of_a_bug_is_logged(
    shared_workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    """What a fork wrote before it failed is in the log, for us."""
    await until(lambda: shared_workers.states()["busy"] == 0)  # forks of the test before
    caplog.clear()

    with pytest.raises(TraceError):
        await shared_workers.estimate(spec_of("bug"), [CARD])
    await until(lambda: shared_workers.states()["busy"] == 0)

    (record,) = [item for item in caplog.records if item.message == "estimator worker failed"]
    assert "KeyError: 'a bug'" in vars(record)["words"]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("spec-error", SpecError),
        ("unsupported", UnsupportedJobError),
    ],
)
async def test_errors_of_the_estimator_arrive_whole(
    shared_workers: Workers, action: str, expected: type[EstimatorError]
) -> None:
    """An error raised in a fork is raised here with its kind, message and hint."""
    with pytest.raises(expected) as caught:
        await shared_workers.estimate(spec_of(action), [CARD])

    assert caught.value.hint in ("try another", "known: adamw")
    if isinstance(caught.value, UnsupportedJobError):
        assert caught.value.code is UnknownCode.OPTIMIZER
        assert caught.value.path == "training.optimizer.name"


async def test_a_fork_cannot_open_a_socket(shared_workers: Workers) -> None:
    """No family of socket can be opened in a fork, and the template knows that it is so."""
    readiness = await shared_workers.ready(Framework.PYTORCH)

    assert readiness.confined
    assert json.loads(await _seen(shared_workers, "open-sockets")) == []


async def test_a_fork_cannot_start_a_program(shared_workers: Workers) -> None:
    """execve is denied in a fork."""
    assert await _seen(shared_workers, "start-program") == "PermissionError"


async def test_a_fork_cannot_change_files(shared_workers: Workers, tmp_path: Path) -> None:
    """Writing to a file and removing one fail in a fork."""
    path = tmp_path / "file"
    path.write_bytes(b"")

    seen = json.loads(await _seen(shared_workers, "write-file", path=str(path)))

    assert seen == ["Operation not permitted", "Operation not permitted"]


async def test_a_fork_that_prints_is_not_held_up(shared_workers: Workers) -> None:
    """A fork may write more than a pipe holds; nobody sees it."""
    assert await shared_workers.estimate(spec_of("print"), [CARD])


async def test_a_fork_sees_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only listed variables reach a fork, among them none that could hold a secret."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("VRAMGATE_CACHE", "kept")
    pool = workers_of()
    try:
        environment = json.loads(await _seen(pool, "environment"))
    finally:
        await pool.close()

    assert "secret" not in environment.values()
    assert environment["VRAMGATE_CACHE"] == "kept"
    assert environment["OMP_NUM_THREADS"] == "1"


async def test_a_fork_holds_only_its_own_socket(shared_workers: Workers) -> None:
    """The control socket and other requests are closed in a fork, and it dumps no core."""
    surroundings = json.loads(await _seen(shared_workers, "surroundings"))

    assert surroundings["sockets"] == 1
    assert surroundings["core"] == [0, 0]
    assert surroundings["parent"] != os.getpid()
