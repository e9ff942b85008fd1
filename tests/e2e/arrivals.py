"""Jobs that keep arriving, submitted one after the other from several threads, as a dry run.

control plane, a job -> every answer in the order the jobs were sent
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.e2e.cluster import ControlPlane
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Arrival:
    """One job and what became of it."""

    sent: float
    """When it was sent, in seconds of the monotonic clock."""
    answered: float
    status: int
    warnings: tuple[str, ...]
    message: str

    @property
    def is_reviewed(self) -> bool:
        """Return whether the webhook had its say: a job it cannot read gets a warning."""
        return self.status == 201 and bool(self.warnings)


class Arrivals:
    """Submit the same job again and again for the length of a `with` block."""

    def __init__(self, plane: ControlPlane, job: Mapping[str, Any], *, num_threads: int) -> None:
        self._plane = plane
        self._job = job
        self._ending = threading.Event()
        self._answers: list[Arrival] = []
        self._threads = [threading.Thread(target=self._submit) for _ in range(num_threads)]

    def __enter__(self) -> Arrivals:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    @property
    def all(self) -> list[Arrival]:
        """Return every answer there is by now."""
        return sorted(self._answers)

    def since(self, moment: float) -> list[Arrival]:
        """Return the answers to jobs that were sent after *moment*."""
        return [each for each in self.all if each.sent > moment]

    def wait_for(self, number: int) -> None:
        """Return once *number* jobs sent from now on are answered."""
        now = time.monotonic()
        poll_until(lambda: len(self.since(now)) >= number, what=f"{number} more answers")

    def wait_until(self, condition: Callable[[Arrival], bool], *, what: str) -> Arrival:
        """Return the first answer to a job sent from now on that *condition* holds of."""
        now = time.monotonic()
        found: list[Arrival] = []

        def is_found() -> bool:
            found[:] = filter(condition, self.since(now))
            return bool(found)

        poll_until(is_found, what=what)
        return found[0]

    def _submit(self) -> None:
        api = ApiServer(self._plane.credentials)
        while not self._ending.is_set():
            sent = time.monotonic()
            answer = api.create(self._job, dry_run=True)
            self._answers.append(
                Arrival(
                    sent=sent,
                    answered=time.monotonic(),
                    status=answer.status,
                    warnings=answer.warnings,
                    message=answer.message,
                )
            )
        api.close()
