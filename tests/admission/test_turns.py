"""Turns go round the keys, none is lost when somebody leaves, and no key has them all."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.turns import NoRoomError, Turn, Turns


class Line:
    """Takes turns one after the other and notes whose they were."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.served: list[str] = []

    async def take(self, key: str) -> None:
        """Wait for a turn, note it, and give it back."""
        turn = self.turns.ask(key)
        try:
            await turn.given()
            self.served.append(key)
            await asyncio.sleep(0)
        finally:
            self.turns.give_back(turn)


async def test_keys_are_served_in_rotation() -> None:
    """Whoever asks for many waits behind its own questions."""
    turns = Turns(1)
    line = Line(turns)
    first = turns.ask("first")
    waiting = [asyncio.create_task(line.take(key)) for key in "aaaabbc"]
    await asyncio.sleep(0)

    turns.give_back(first)
    await asyncio.gather(*waiting)

    assert "".join(line.served) == "abcabaa"


async def test_no_more_turns_are_out_than_there_are() -> None:
    """The third waits for the first."""
    turns = Turns(2)
    first = turns.ask("a")
    turns.ask("b")

    third = turns.ask("c")
    assert (third.is_given, turns.num_waiting, turns.num_asked) == (False, 1, 3)
    turns.give_back(first)

    assert (third.is_given, turns.num_waiting, turns.num_asked) == (True, 0, 2)


@pytest.mark.parametrize(("number", "most"), [(1, 1), (2, 1), (3, 2), (8, 7)])
async def test_one_key_never_has_the_last_turn(number: int, most: int) -> None:
    """Whatever it asks for and however long it keeps it, another comes through at once."""
    turns = Turns(number)
    flood = [turns.ask("flood") for _ in range(20)]
    assert sum(turn.is_given for turn in flood) == most

    other = turns.ask("other")

    assert other.is_given is (number > 1)
    turns.give_back(flood[0])
    assert flood[most].is_given
    turns.give_back(flood[most])
    assert other.is_given


async def test_whoever_leaves_the_line_gets_no_turn() -> None:
    """The turn goes to the next instead."""
    turns = Turns(1)
    first = turns.ask("x")
    line = Line(turns)
    hasty, patient = (asyncio.create_task(line.take(key)) for key in "ab")
    await asyncio.sleep(0)

    hasty.cancel()
    await asyncio.wait([hasty])
    assert turns.num_waiting == 1
    turns.give_back(first)

    await patient
    assert line.served == ["b"]


async def test_turn_given_in_the_moment_of_leaving_is_not_lost() -> None:
    """Cancelled between being served and going on, it hands the turn on."""
    turns = Turns(1)
    first = turns.ask("a")
    line = Line(turns)
    hasty, patient = (asyncio.create_task(line.take("b")) for _ in range(2))
    await asyncio.sleep(0)

    turns.give_back(first)
    hasty.cancel()

    await patient
    assert hasty.cancelled()


async def test_a_turn_is_given_back_once() -> None:
    """However often it is said."""
    turns = Turns(1)
    turn = turns.ask("a")

    for _ in range(3):
        turns.give_back(turn)

    assert [turns.ask(key).is_given for key in "ab"] == [True, False]


async def test_places_to_wait_are_bounded_for_each_and_for_all() -> None:
    """Beyond that nobody waits: neither a key with too many, nor one with as many as others."""
    turns = Turns(1, room=4, room_each=2)
    for key in "aabb":
        turns.ask(key)

    for key in "ab":
        with pytest.raises(NoRoomError):
            turns.ask(key)


async def test_whoever_comes_new_takes_the_place_of_the_longest_line() -> None:
    """Its newest is refused, and hears of it; equals take nothing from each other."""
    turns = Turns(1, room=6)
    out = turns.ask("x")
    flood = [turns.ask("flood") for _ in range(5)]

    first, second = turns.ask("new"), turns.ask("newer")

    for refused in flood[3:]:
        with pytest.raises(NoRoomError):
            await refused.given()
    with pytest.raises(NoRoomError):
        [turns.ask("new") for _ in range(2)]
    turns.give_back(out)
    assert [turn.is_given for turn in (*flood[:3], first, second)] == [True, *[False] * 4]
    assert turns.num_asked == 3 + 2


ACTS = st.tuples(st.sampled_from("abc"), st.sampled_from(("ask", "ask", "end", "leave")))


@given(st.integers(1, 3), st.integers(3, 9), st.lists(ACTS, max_size=40))
def test_turns_are_never_lost_or_doubled(
    number: int, room: int, acts: list[tuple[str, str]]
) -> None:
    """Whoever asks, ends or leaves: what may be out is out, and no key has the last one."""

    async def scene() -> None:
        turns = Turns(number, room=room)
        asked: list[Turn] = []
        most = max(1, number - 1)
        for key, act in acts:
            if act == "ask":
                try:
                    asked.append(turns.ask(key))
                except NoRoomError:
                    assert turns.num_asked >= room
            else:
                mine = [turn for turn in asked if turn.key == key]
                mine = [turn for turn in mine if turn.is_given is (act == "end")]
                for turn in mine[:1]:
                    turns.give_back(turn)
                    asked.remove(turn)
            out = [turn.key for turn in asked if turn.is_given]
            assert len(out) <= number
            assert turns.num_asked <= room
            assert all(out.count(each) <= most for each in "abc")
            waiting = turns.num_asked - len(out)
            assert turns.num_waiting == waiting
            if len(out) < number:  # whoever waits then has all that one key may have
                lines = {turn.key for turn in asked if not turn.is_given and not _is_refused(turn)}
                assert all(out.count(each) == most for each in lines)
        for turn in asked:
            turns.give_back(turn)
        free = [turns.ask(str(each)) for each in range(number)]
        assert all(turn.is_given for turn in free)

    asyncio.run(scene())


def _is_refused(turn: Turn) -> bool:
    waits = turn.given()
    try:
        waits.send(None)
    except NoRoomError:
        return True
    except StopIteration:
        return False
    waits.close()
    return False
