"""A few threads for work that may take long, so that the event loop goes on.

    work, key -> its result

A thread cannot be ended: whoever gives up leaves it to its end, and it keeps its turn until then.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from admission.turns import Turns

T = TypeVar("T")


class Threads:
    """At most *number* threads at once, their turns in rotation by key. For one event loop."""

    def __init__(self, number: int) -> None:
        self._turns = Turns(number)

    @property
    def num_waiting(self) -> int:
        """Return how much work waits for a thread."""
        return self._turns.num_waiting

    async def run(self, work: Callable[[], T], *, key: str) -> T:
        """Return what *work* returns or raise what it raises; it runs in a thread of its own."""
        await self._turns.wait(key)
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()

        def finish(value: T | None, error: Exception | None) -> None:
            self._turns.give_back()
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

        # A daemon: the process does not wait for it at its end.
        threading.Thread(target=body, name="reading", daemon=True).start()
        return await result
