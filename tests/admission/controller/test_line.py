"""Keys that wait to be looked at."""

from __future__ import annotations

import asyncio

import pytest

from admission.controller.line import FIRST_PAUSE_SECONDS, Line


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Stand at 0."""
    return Clock()


async def taken(line: Line) -> str | None:
    """Return the key that is due now, None if there is none."""
    try:
        async with asyncio.timeout(0.02):
            return await line.next()
    except TimeoutError:
        return None


async def test_a_key_waits_once_and_for_the_soonest_of_its_times(clock: Clock) -> None:
    """However often it is added."""
    line = Line(clock=clock)
    line.add("a", after=60)
    line.add("a", after=5)
    line.add("a", after=30)

    assert line.length == 0
    clock.now = 5
    assert await taken(line) == "a"
    line.done("a")
    clock.now = 100
    assert await taken(line) is None


async def test_a_key_is_looked_at_by_one_at_a_time(clock: Clock) -> None:
    """What changes meanwhile is looked at afterwards."""
    line = Line(clock=clock)
    line.add("a")
    assert await taken(line) == "a"
    line.add("a")

    assert await taken(line) is None
    line.done("a")
    assert await taken(line) == "a"


async def test_a_look_that_fails_is_tried_again_later_each_time(clock: Clock) -> None:
    """Also if the key changes all the time; and one that went well begins anew."""
    line = Line(clock=clock)
    line.add("a")
    assert await taken(line) == "a"
    for failures in range(4):
        line.add("a")
        line.failed("a")
        pause = FIRST_PAUSE_SECONDS * 2.0**failures
        clock.now += 0.7 * pause
        assert await taken(line) is None
        clock.now += 0.6 * pause
        assert await taken(line) == "a"
    line.done("a", again=1)
    clock.now += 1

    assert await taken(line) == "a"
    line.failed("a")
    clock.now += 1.3 * FIRST_PAUSE_SECONDS
    assert await taken(line) == "a"


async def test_whoever_waits_gets_what_is_added(clock: Clock) -> None:
    """Without having asked again."""
    line = Line(clock=clock)
    waiting = asyncio.create_task(line.next())
    await asyncio.sleep(0)
    line.add("a")

    assert await asyncio.wait_for(waiting, 5) == "a"
