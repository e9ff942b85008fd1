"""Work in a few threads: results, errors, and what is left behind."""

from __future__ import annotations

import asyncio
import threading

import pytest

from admission.threads import Threads
from tests.estimator.workers.cases import until
from tests.faults.limits import no_more_threads


async def test_result_and_error_come_back() -> None:
    """What the work returns is returned, what it raises is raised."""
    threads = Threads(1)

    assert await threads.run(threading.current_thread, key="a") is not threading.main_thread()
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0, key="a")


async def test_work_given_up_keeps_its_thread_until_its_end() -> None:
    """The next work waits for it: there are never more threads than allowed."""
    threads, may_end = Threads(1), threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await threads.run(may_end.wait, key="a")

    following = asyncio.create_task(threads.run(lambda: 7, key="b"))
    await asyncio.sleep(0.02)
    assert (following.done(), threads.num_waiting) == (False, 1)
    may_end.set()

    assert await following == 7


async def test_waiting_work_that_is_given_up_never_runs() -> None:
    """It leaves the line."""
    threads, may_end, ran = Threads(1), threading.Event(), threading.Event()
    running = asyncio.create_task(threads.run(may_end.wait, key="a"))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(threads.run(ran.set, key="a"))
    await asyncio.sleep(0)

    waiting.cancel()
    may_end.set()
    await running
    await asyncio.wait([waiting])

    assert not ran.is_set()


async def test_work_without_a_thread_fails_and_keeps_no_turn() -> None:
    """The system has none left for us; the next work has its turn and its thread."""
    threads = Threads(1)

    with no_more_threads(), pytest.raises(RuntimeError, match="start new thread"):
        await threads.run(lambda: 7, key="a")

    assert await threads.run(lambda: 7, key="a") == 7


async def test_long_work_of_one_key_leaves_a_thread_to_others() -> None:
    """However much of it there is."""
    threads, may_end = Threads(2), threading.Event()
    flood = [asyncio.create_task(threads.run(may_end.wait, key="flood")) for _ in range(5)]
    await asyncio.sleep(0)

    async with asyncio.timeout(30):
        assert await threads.run(lambda: 7, key="other") == 7

    may_end.set()
    await asyncio.gather(*flood)


def test_work_left_behind_ends_quietly_after_its_loop() -> None:
    """A server that stops does not wait for a reading, and the reading fails nobody."""
    may_end = threading.Event()

    async def scene() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await Threads(1).run(may_end.wait, key="a")

    asyncio.run(scene())
    (left,) = (thread for thread in threading.enumerate() if thread.name == "reading")
    assert left.daemon

    may_end.set()
    asyncio.run(until(lambda: not left.is_alive()))
