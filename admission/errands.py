"""Questions to the workers that several callers may wait for.

    spec, devices -> Errand; known answers and errands -> Question -> answers

An errand that has begun goes on to its end; one that has not ends with the last who waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from admission.turns import NoRoomError, Turn
from estimator.device import Device
from estimator.errors import EstimatorError
from estimator.workers.api import Job

if TYPE_CHECKING:
    from estimator.result import Estimate, Fit

T = TypeVar("T", "Estimate", "Fit")


@dataclass(slots=True, kw_only=True, eq=False)
class Errand(Generic[T]):
    """One question to the workers: waits for its turn, then is asked."""

    job: Job
    devices: tuple[Device, ...]
    since: float
    task: asyncio.Task[tuple[T, ...]] = field(init=False)
    turns: dict[str, Turn] = field(default_factory=dict)
    """Who asked, each with a turn of its own: the first one that comes will do."""
    _ready: asyncio.Future[None] = field(
        init=False, default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    num_waiting: int = 0
    has_begun: bool = False

    @property
    def is_dropped(self) -> bool:
        """Return whether it was told to end."""
        return bool(self.task.cancelling())

    def join(self, turn: Turn) -> None:
        """Let *turn* be one more that it may begin with."""
        self.turns[turn.key] = turn
        turn.then(self._hear)

    async def begin(self) -> tuple[Turn, ...]:
        """Wait for the first turn and begin; return the others, which are not needed.

        Raises:
            NoRoomError: if no turn will come.
        """
        await self._ready
        self.has_begun = True
        first = next(turn for turn in self.turns.values() if turn.is_given)
        return tuple(turn for turn in self.turns.values() if turn is not first)

    def _hear(self, turn: Turn) -> None:
        if not turn.is_given:
            self.turns.pop(turn.key, None)
        if self._ready.done():
            return
        if turn.is_given:
            self._ready.set_result(None)
        elif not self.turns:
            self._ready.set_exception(NoRoomError())
            self._ready.exception()  # nobody may be waiting any more

    def leave(self) -> None:
        """Count one less who waits for it; without any it does not begin."""
        self.num_waiting -= 1
        if not self.num_waiting and not self.has_begun:
            self.task.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited(Generic[T]):
    """One device's answer on its way: its place among those the errand will bring."""

    errand: Errand[T]
    place: int


class Question(Generic[T]):
    """What one caller waits for: an answer, a failure or an errand for each device."""

    def __init__(self, found: Sequence[T | EstimatorError | Awaited[T]]) -> None:
        self._found: tuple[T | EstimatorError | Awaited[T], ...] = tuple(found)
        for errand in self._errands():
            errand.num_waiting += 1

    @property
    def is_known(self) -> bool:
        """Return whether every answer is there, and is one."""
        return not any(isinstance(item, Awaited | EstimatorError) for item in self._found)

    async def answers(self) -> tuple[T, ...]:
        """Return the answers in order.

        Raises:
            EstimatorError: the first failure.
        """
        return tuple([await _answer(item) for item in self._found])

    def leave(self) -> None:
        """Wait no longer."""
        for errand in self._errands():
            errand.leave()
        self._found = ()

    def _errands(self) -> set[Errand[T]]:
        return {item.errand for item in self._found if isinstance(item, Awaited)}


async def _answer(item: T | EstimatorError | Awaited[T]) -> T:
    if isinstance(item, EstimatorError):
        raise item
    if isinstance(item, Awaited):
        # The shield: a caller that is cancelled at its deadline does not end the task.
        return (await asyncio.shield(item.errand.task))[item.place]
    return item
