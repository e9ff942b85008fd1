"""The process over time: crash, hang, refusal, restart."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import orjson
import pytest
import pytest_asyncio

from estimator.cudnn import Answer, Card, Question
from estimator.cudnn.client import Plans
from estimator.cudnn.journal import Journal, new_memory
from estimator.cudnn.wire import encode_key
from estimator.workers.cudnn_process import CudnnProcess
from estimator.workers.cudnn_supervisor import CudnnSupervisor
from estimator.workers.limits import Limits
from tests.estimator.cudnn.cases import A100, CRASHING, FOLDER, RTX_PRO_6000, convolution
from tests.estimator.cudnn.conftest import PATIENCE
from tests.estimator.workers.cases import is_process, state_of, until

Connect = Callable[..., Plans]
HASTY = Limits(question_seconds=1.0, kill_seconds=0.1)


@pytest_asyncio.fixture
async def hasty() -> AsyncIterator[CudnnSupervisor]:
    """A process that may think 1 s about a question."""
    keeper = CudnnSupervisor(FOLDER, limits=HASTY)
    yield keeper
    await keeper.close()


@pytest.fixture
def plans_of() -> Iterator[Connect]:
    """Connect to the process of a supervisor."""
    opened: list[Plans] = []

    def connection(keeper: CudnnSupervisor, limit_seconds: float = PATIENCE) -> Plans:
        ours = keeper.connect()
        assert ours is not None
        opened.append(Plans(ours, limit_seconds=limit_seconds))
        return opened[-1]

    yield connection
    for plans in opened:
        plans.close()


async def ready(keeper: CudnnSupervisor) -> CudnnProcess:
    """Return the process once it is ready."""
    process = keeper.start()
    assert process is not None
    await asyncio.shield(process.ready)
    return process


async def ask(plans: Plans, *questions: Question, card: Card = A100) -> list[Answer | None]:
    """Ask in a thread, as a fork would in its process."""
    return await asyncio.to_thread(plans.ask, questions, card)


async def test_a_ready_process_is_confined_and_idle(hasty: CudnnSupervisor) -> None:
    """It has no network, says what it holds, and is asking nothing."""
    process = await ready(hasty)

    readiness = process.ready.result()

    assert readiness.confined
    assert readiness.rss_bytes > 0
    assert process.asking is None


async def test_a_killed_process_is_unknown_and_started_again(
    hasty: CudnnSupervisor, plans_of: Connect
) -> None:
    """Killed while a fork waits for it: that one goes on without, the next one is served."""
    process = await ready(hasty)
    plans = plans_of(hasty)
    os.kill(process.pid, signal.SIGSTOP)
    asked = asyncio.create_task(ask(plans, convolution()))
    await asyncio.sleep(0)

    process.kill()

    assert await asked == [None]
    assert plans.reason is not None
    assert plans.reason.startswith("cuDNN's process ended")
    await asyncio.shield(process.ended)
    assert await ask(plans_of(hasty), convolution()) != [None]


async def test_a_question_that_crashes_the_library_is_not_asked_again(
    hasty: CudnnSupervisor, plans_of: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """9.26 divides by zero at a very long image on sm 120: its successor refuses that one."""
    caplog.set_level("INFO", "estimator")
    process = await ready(hasty)

    assert await ask(plans_of(hasty), CRASHING, card=RTX_PRO_6000) == [None]
    assert await asyncio.shield(process.ended) == -signal.SIGFPE
    (record,) = (record for record in caplog.records if record.message == "cudnn ended")
    assert record.__dict__["asked"] == encode_key(RTX_PRO_6000, CRASHING).decode()

    plans = plans_of(hasty)
    answers = await ask(plans, CRASHING, convolution(), card=RTX_PRO_6000)
    assert answers[0] is None
    assert answers[1] is not None
    assert plans.reason == "cuDNN ended or hung on this convolution before"


async def test_a_process_that_does_not_answer_is_given_up_and_ended(
    hasty: CudnnSupervisor, plans_of: Connect
) -> None:
    """The fork waits its own limit, the supervisor that of a question; the next fork is served."""
    process = await ready(hasty)
    os.kill(process.pid, signal.SIGSTOP)
    plans = plans_of(hasty, 0.05)

    assert await ask(plans, convolution()) == [None]
    assert plans.reason == "cuDNN did not answer within 0.05 s"
    assert await ask(plans, convolution(batch=1)) == [None]

    assert await asyncio.shield(process.ended) == -signal.SIGKILL
    assert await ask(plans_of(hasty), convolution()) != [None]


async def test_a_fork_may_ask_before_the_process_is_ready(
    hasty: CudnnSupervisor, plans_of: Connect
) -> None:
    """A connection made at the start is served once the library is warm."""
    plans = plans_of(hasty)

    assert await ask(plans, convolution()) != [None]


async def test_a_folder_without_a_library_is_not_tried_again(
    tmp_path: Path, plans_of: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """The first fork gets a connection that ends, later ones get none; the log says why."""
    keeper = CudnnSupervisor(tmp_path, limits=Limits())
    process = keeper.start()
    assert process is not None
    plans = plans_of(keeper)

    assert await ask(plans, convolution()) == [None]

    assert plans.reason is not None
    await asyncio.shield(process.ended)
    assert keeper.connect() is None
    await until(lambda: "cudnn failed" in caplog.messages)
    (record,) = (record for record in caplog.records if record.message == "cudnn failed")
    assert record.__dict__["error"].startswith("libcudnn.so.9 does not load")
    await keeper.close()


async def test_a_process_that_keeps_ending_is_left_alone_for_a_while(
    hasty: CudnnSupervisor,
) -> None:
    """After two ends in a row there is no connection, and nobody waits for one."""
    for _ in range(2):
        process = hasty.start()
        assert process is not None
        process.kill()
        await asyncio.shield(process.ended)

    assert hasty.connect() is None


async def test_close_leaves_no_process(hasty: CudnnSupervisor) -> None:
    """The process is gone when `close` returns."""
    process = await ready(hasty)

    await hasty.close()

    assert state_of(process.pid) == ""


_HANGING = """
import signal, sys
from estimator.cudnn import wire
from estimator.cudnn.desk import Desk
from estimator.cudnn.journal import Journal
from estimator.cudnn.support import Release
from tests.estimator.cudnn.cases import A100, convolution

class Hanging:
    release = Release(version=92600, cuda=13)

    def answer(self, properties, question):
        while True:
            signal.pause()

desk = Desk(Hanging(), Journal(int(sys.argv[1])), question_seconds=0.01)
desk.respond(wire.encode_batch(A100, [convolution()]))
"""


def test_a_question_that_takes_too_long_ends_the_process_and_is_named() -> None:
    """A timer of the kernel's ends it; what it was asked stays behind."""
    memory = new_memory()
    journal = Journal(memory)
    command = [sys.executable, "-c", _HANGING, str(memory)]

    ended = subprocess.run(command, pass_fds=(memory,), check=False)
    os.close(memory)

    assert ended.returncode == -signal.SIGALRM
    assert journal.read() == encode_key(A100, convolution())


_PARENT = """
import asyncio
from estimator.workers.cudnn_supervisor import CudnnSupervisor
from estimator.workers.limits import Limits
from tests.estimator.cudnn.cases import FOLDER

async def main():
    process = CudnnSupervisor(FOLDER, limits=Limits()).start()
    await process.ready
    print(process.pid, flush=True)
    await process.ended

asyncio.run(main())
"""


async def test_the_process_dies_with_its_parent() -> None:
    """When the process that started it is killed, it ends."""
    command = [sys.executable, "-c", _PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:  # noqa: ASYNC220
        assert parent.stdout is not None
        pid = int(orjson.loads(parent.stdout.readline()))
        parent.kill()

    await until(lambda: not is_process(pid))
