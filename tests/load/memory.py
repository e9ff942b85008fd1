"""Memory of the server and its workers while the load lasts, and how fast it grows.

samples over answers -> MiB for each 100,000 reviews
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.bench.figures import resident_mib
from tests.load import processes

SETTLED = 0.4
"""The part of a run in which caches fill: its samples say nothing of what comes after."""
PER_REVIEWS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look."""

    answered: int
    serve: float
    templates: float
    """MiB of the largest."""


@dataclass(slots=True, kw_only=True)
class Memory:
    """Samples of one run."""

    pid: int
    seconds: float
    samples: list[Sample] = field(default_factory=list)
    largest_worker: float = 0.0
    """MiB that one worker had of its own."""

    async def watch(self, answered: Callable[[], int]) -> None:
        """Look every few seconds until cancelled."""
        while True:
            self.look(answered())
            await asyncio.sleep(self.seconds)

    def look(self, answered: int) -> None:
        """Take one sample."""
        templates = [_resident(pid) for pid in processes.templates(self.pid)]
        found = [processes.private_mib(pid) for pid in processes.forks(self.pid)]
        self.largest_worker = max(self.largest_worker, *found, 0.0)
        sample = Sample(
            answered=answered, serve=resident_mib(self.pid), templates=max(templates, default=0.0)
        )
        self.samples.append(sample)

    @property
    def slope(self) -> float:
        """Return how much the server grows, in MiB for each 100,000 reviews, once it is settled."""
        last = self.samples[-1].answered
        late = [sample for sample in self.samples if sample.answered >= SETTLED * last]
        places = [sample.answered / PER_REVIEWS for sample in late]
        if len(set(places)) < 2:
            return 0.0
        return statistics.linear_regression(places, [sample.serve for sample in late]).slope

    @property
    def template_growth(self) -> float:
        """Return how much larger a template was in the second half than ever in the first, in MiB.

        One that was killed meanwhile begins anew, so there is no slope.
        """
        half = len(self.samples) // 2
        early = max(sample.templates for sample in self.samples[: half + 1])
        return max(sample.templates for sample in self.samples[half:]) - early


def _resident(pid: int) -> float:
    try:
        return resident_mib(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
