"""Questions to the workers that several callers may wait for.

    spec, devices -> Errand; known answers and errands -> Question -> answers

An errand that has begun goes on to its end; one that has not ends with the last who waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

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
    asker: str
    since: float
    task: asyncio.Task[tuple[T, ...]] = field(init=False)
    num_waiting: int = 0
    has_begun: bool = False

    @property
    def is_dropped(self) -> bool:
        """Return whether it was told to end."""
        return bool(self.task.cancelling())

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
