"""Tries to get out of a worker, from inside one."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from estimator.errors import EstimatorUnavailableError
from estimator.spec import Framework
from estimator.workers.limits import Limits
from estimator.workers.pool import Workers
from tests.estimator.workers.cases import CARD, spec_of, until, workers_of
from tests.estimator.workers.escapes import READS, WAYS

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODULE = "tests.estimator.workers.escapes"
ENDED = {
    # No room for another thread; no such call: libraries go on without it.
    "threads without end": "EAGAIN",
    "a call that nobody knows": "ENOSYS",
    "clone3": "ENOSYS",
    "openat2": "ENOSYS",
    # Python says it so.
    "more memory": "not allowed to raise maximum limit",
}
"""How a way ends, where it is not EPERM (the filter) or EACCES (Landlock)."""
SECRETS = {
    "HF_TOKEN": "secret",
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "KUBERNETES_PORT": "tcp://10.0.0.1:443",
    "VRAMGATE_PORT_8443_TCP": "tcp://10.0.0.2:8443",
    "VRAMGATE_SERVICE_HOST": "10.0.0.2",
    "VRAMGATE_HUB_TOKEN": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "HTTPS_PROXY": "http://user:secret@proxy",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tried(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, str]]:
    """Return what came of each way that a fork tried, beside a sibling."""
    folder = tmp_path_factory.mktemp("out")
    secret = folder / "token"
    secret.write_text("secret")
    pool = Workers(max_concurrent=2, prepare=f"{MODULE}:prepare", cudnn=())
    others = workers_of()
    try:
        waiting = asyncio.create_task(others.estimate(spec_of("wait"), [CARD]))
        await until(lambda: len(others.pids()) == 2)
        with socket.create_server(("127.0.0.1", 0)) as server:
            host, port = server.getsockname()
            config = {
                "secret": str(secret),
                "folder": str(folder),
                "sibling": others.pids()[1],
                "host": host,
                "port": port,
            }
            (estimate,) = await pool.estimate(spec_of("escape", config=config), [CARD])
        assert not waiting.done()
        assert {path.name for path in folder.iterdir()} == {"token"}
        assert secret.read_text() == "secret"
        yield json.loads(estimate.warnings[0])
    finally:
        await pool.close()
        await others.close()
        await asyncio.gather(waiting, return_exceptions=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def found() -> AsyncIterator[dict[str, Any]]:
    """Return what a fork finds in its own process."""
    patch = pytest.MonkeyPatch()
    for name, value in SECRETS.items():
        patch.setenv(name, value)
    pool = Workers(prepare=f"{MODULE}:prepare_looking", cudnn=())
    try:
        (estimate,) = await pool.estimate(spec_of("look"), [CARD])
        yield json.loads(estimate.warnings[0])
    finally:
        patch.undo()
        await pool.close()


@pytest.mark.parametrize("way", [name for name in WAYS if name not in READS])
async def test_a_way_out_is_closed(tried: dict[str, str], way: str) -> None:
    """By the kernel, whatever runs in the worker."""
    assert tried[way] == ENDED.get(way, "EPERM")


@pytest.mark.parametrize("way", READS)
async def test_nothing_of_others_can_be_read(
    shared_workers: Workers, tried: dict[str, str], way: str
) -> None:
    """Neither files nor other processes of the same user."""
    readiness = await shared_workers.ready(Framework.PYTORCH)
    if not readiness.landlock:
        pytest.skip("this kernel has no Landlock")

    assert tried[way] == "EACCES"


async def test_every_call_of_the_table_is_denied(found: dict[str, Any]) -> None:
    """The table and the kernel mean the same by a number."""
    answers = json.loads(found["refused"])

    assert {name: answer for name, answer in answers.items() if answer != "EPERM"} == {}
    assert {"mount", "fchmodat2", "io_uring_enter"} <= set(answers)


async def test_a_worker_holds_its_request_and_its_last_words(found: dict[str, Any]) -> None:
    """Standard input is the null device; nothing else is inherited."""
    assert found["descriptors"] == ["device", "pipe", "socket"]


async def test_a_worker_knows_no_name_of_the_cluster(found: dict[str, Any]) -> None:
    """Neither tokens nor where the API server is."""
    seen = set(found["environment"])

    assert seen & set(SECRETS) == set()
    assert not [name for name in seen if "TOKEN" in name or name.startswith("KUBERNETES")]


@pytest.mark.parametrize("lacking", ["landlock", "seccomp"])
async def test_a_kernel_without_a_feature_is_told_and_goes_on(
    lacking: str, shared_workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    """Unless it is required: then nothing is estimated, and the reason says what is missing."""
    ours = await shared_workers.ready(Framework.PYTORCH)
    caplog.clear()
    pool = workers_of(prepare=f"prepare_without_{lacking}")
    strict = workers_of(Limits(isolation_required=True), prepare=f"prepare_without_{lacking}")
    try:
        (estimate,) = await pool.estimate(spec_of("pid"), [CARD])
        with pytest.raises(EstimatorUnavailableError, match=f"gives no {lacking}"):
            await strict.estimate(spec_of("pid"), [CARD])
        isolation = pool.isolation()
    finally:
        await pool.close()
        await strict.close()

    assert estimate.warnings[0] != str(os.getpid())
    assert isolation is not None
    assert set(isolation.missing) == {lacking} | ({"landlock"} if not ours.landlock else set())
    told = [each for each in caplog.records if "not isolated" in each.message]
    assert [vars(each)["lacks"] for each in told] == [list(isolation.missing)] * 2
