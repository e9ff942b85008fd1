"""How long a review may still take.

seconds -> Deadline -> what is left
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from estimator.deferred import Deferred

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = Deferred("asyncio")

T = TypeVar("T")


class Late(Exception):
    """The answer is not there yet; the question goes on without us."""


class Deadline:
    """A moment on the event loop's clock; without seconds it never comes."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else asyncio.get_running_loop().time() + seconds

    @property
    def seconds_left(self) -> float | None:
        """Return what is left, at least 0; None if there is no deadline."""
        if self._end is None:
            return None
        return max(0.0, self._end - asyncio.get_running_loop().time())

    async def of(self, question: Coroutine[Any, Any, T]) -> T:
        """Return the answer to *question*, if it comes in time.

        A late question is not cancelled: it runs on, and its answer fills the cache for the next
        review. If it fails then, nobody is left to hear of it.

        Raises:
            Late: if the deadline comes first.
        """
        task = asyncio.ensure_future(question)
        task.add_done_callback(_heard)
        done, _ = await asyncio.wait({task}, timeout=self.seconds_left)
        if not done:
            raise Late
        return task.result()


def _heard(task: asyncio.Task[Any]) -> None:
    """Take note of the outcome, so that asyncio does not warn about a failure nobody awaited."""
    if not task.cancelled():
        task.exception()
