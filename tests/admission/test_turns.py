"""Turns go round the keys, and none is lost when somebody leaves."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from admission.turns import Turns


class Line:
    """Takes turns one after the other and notes whose they were."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.served: list[str] = []

    async def take(self, key: str) -> None:
        """Wait for a turn, note it, and give it back."""
        await self.turns.wait(key)
        try:
            self.served.append(key)
            await asyncio.sleep(0)
        finally:
            self.turns.give_back()


async def test_keys_are_served_in_rotation() -> None:
    """Whoever asks for many waits behind its own questions."""
    turns = Turns(1)
    line = Line(turns)
    await turns.wait("first")
    waiting = [asyncio.create_task(line.take(key)) for key in "aaaabbc"]
    await asyncio.sleep(0)

    turns.give_back()
    await asyncio.gather(*waiting)

    assert "".join(line.served) == "abcabaa"


async def test_no_more_turns_are_out_than_there_are() -> None:
    """The third waits for the first."""
    turns = Turns(2)
    await turns.wait("a")
    await turns.wait("a")

    third = asyncio.create_task(turns.wait("b"))
    await asyncio.sleep(0)
    assert (third.done(), turns.num_waiting) == (False, 1)
    turns.give_back()

    await third
    assert turns.num_waiting == 0


async def test_whoever_leaves_the_line_gets_no_turn() -> None:
    """The turn goes to the next instead."""
    turns = Turns(1)
    await turns.wait("a")
    hasty, patient = (asyncio.create_task(turns.wait(key)) for key in "ab")
    await asyncio.sleep(0)

    hasty.cancel()
    await asyncio.wait([hasty])
    assert turns.num_waiting == 1
    turns.give_back()

    await patient


async def test_turn_given_in_the_moment_of_leaving_is_not_lost() -> None:
    """Cancelled between being served and going on, it hands the turn on."""
    turns = Turns(1)
    await turns.wait("a")
    hasty, patient = (asyncio.create_task(turns.wait("b")) for _ in range(2))
    await asyncio.sleep(0)

    turns.give_back()
    hasty.cancel()

    await patient
    assert hasty.cancelled()


@given(st.integers(1, 3), st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12))
def test_turns_are_never_lost_or_doubled(number: int, asking: list[tuple[str, bool]]) -> None:
    """Whoever asks and whoever leaves, in the end all turns are free again."""

    async def scene() -> None:
        turns = Turns(number)
        line = Line(turns)
        tasks = []
        for key, leaves in asking:
            task = asyncio.create_task(line.take(key))
            tasks.append(task)
            await asyncio.sleep(0)
            if leaves:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert turns.num_waiting == 0
        for _ in range(number):
            async with asyncio.timeout(1):
                await turns.wait("x")

    asyncio.run(scene())
