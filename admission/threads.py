"""A few threads for work that may take long, so that the event loop goes on.

    work, key -> its result

A thread cannot be ended: whoever gives up leaves it to its end, and it keeps its turn until then.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

from admission.turns import Turns

T = TypeVar("T")
Arguments = ParamSpec("Arguments")


async def aside(
    work: Callable[Arguments, T], *arguments: Arguments.args, **named: Arguments.kwargs
) -> T:
    """Return what *work* returns: beside the loop, or on it where the system has no thread for us.

    For what a review cannot be answered without, and what takes milliseconds.
    """
    try:
        return await asyncio.to_thread(work, *arguments, **named)
    except RuntimeError:
        return work(*arguments, **named)


class Threads:
    """At most *number* threads at once, their turns in rotation by key. For one event loop.

    One key has all but one of them at most; *room* are the works that run or wait.
    """

    def __init__(self, number: int, *, room: float = math.inf) -> None:
        self._turns = Turns(number, room=room)

    @property
    def num_waiting(self) -> int:
        """Return how much work waits for a thread."""
        return self._turns.num_waiting

    async def run(self, work: Callable[[], T], *, key: str) -> T:
        """Return what *work* returns or raise what it raises; it runs in a thread of its own.

        Raises:
            NoRoomError: if too much work waits.
            RuntimeError: if the system has no thread left.
        """
        turn = self._turns.ask(key)
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()

        def finish(value: T | None, error: Exception | None) -> None:
            self._turns.give_back(turn)
            if result.cancelled():
                return
            if error is not None:
                result.set_exception(error)
            else:
                result.set_result(value)  # type: ignore[arg-type] # None only beside an error

        def body() -> None:
            value, error = None, None
            try:
                value = work()
            except Exception as raised:  # raised again where it is waited for
                error = raised
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(finish, value, error)

        try:
            await turn.given()
            # A daemon: the process does not wait for it at its end.
            threading.Thread(target=body, name="reading", daemon=True).start()
        except BaseException:
            self._turns.give_back(turn)
            raise
        return await result
