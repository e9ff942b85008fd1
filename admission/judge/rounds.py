"""Read a workload, fetch what the reading wants, and read again.

    read(documents), fetch(references) -> Workload, Views with everything that could be had

At most three rounds: a script in a ConfigMap that opens another, whose model is on the Hub.
All of them together have one time limit, and one job a number of documents.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from admission.judge.views import Views
from admission.values import NO_DOCUMENTS, Document, Documents, Workload
from estimator.deferred import Deferred

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = Deferred("asyncio")

MAX_ROUNDS = 3
MAX_DOCUMENTS = 64
"""Of one job. A kind with many pod templates could want a thousand."""
SECONDS = 2.0
"""For all documents of one job together, where nobody says otherwise."""

Read = Callable[[Documents], Awaitable[tuple[Workload, Views] | None]]
"""Reads with what was fetched so far; None if there is no time."""
Fetch = Callable[[tuple[str, ...], str], Awaitable[Documents]]
"""References and the workload's namespace -> documents. Answers each reference, never raises."""


class Fetching(Protocol):
    """Who has the documents that objects refer to."""

    async def fetch(
        self, wanted: Sequence[str], *, namespace: str, seconds: float | None = None
    ) -> Documents:
        """Return a document for each of *wanted*; one that cannot be had says why."""
        ...


class TimedFetching(Fetching, Protocol):
    """The same, with a limit that an operator chose."""

    @property
    def seconds(self) -> float:
        """Return how long all documents of one job may take together."""
        ...


async def in_rounds(
    read: Read,
    fetch: Fetch,
    *,
    documents: Documents = NO_DOCUMENTS,
    seconds: float = SECONDS,
) -> tuple[Workload, Views] | None:
    """Return the reading that wants nothing more, or the last one; None if there is no time.

    *seconds* are for fetching alone, in all rounds together; what is late by then says so.
    """
    found = await read(documents)
    num_asked = 0
    left = seconds
    for _ in range(MAX_ROUNDS):
        if found is None:
            return None
        workload, views = found
        wanted = tuple(name for name in wanted_by(workload, views) if name not in documents)
        if not wanted:
            return found
        asked = wanted[: MAX_DOCUMENTS - num_asked]
        num_asked += len(asked)
        began = time.monotonic()
        had = await _fetched(asked, workload.ref.namespace, fetch, seconds=left)
        left = max(0.0, left - (time.monotonic() - began))
        late = f"took longer than {seconds:.1f} s, with all that the job refers to"
        documents = {
            **documents,
            **{name: Document(problem=_TOO_MANY) for name in wanted[len(asked) :]},
            **{name: had.get(name) or Document(problem=late) for name in asked},
        }
        found = await read(documents)
    return found


_TOO_MANY = f"is one of more than {MAX_DOCUMENTS} documents of one job"


async def _fetched(
    wanted: Sequence[str], namespace: str, fetch: Fetch, *, seconds: float
) -> Documents:
    """Return the documents that came within *seconds*, each waited for by itself."""
    tasks = [asyncio.create_task(_one(name, namespace, fetch)) for name in wanted]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds) if tasks else (set(), set())
    finally:
        for task in tasks:
            task.cancel()
    found: dict[str, Document] = {}
    for task in done:
        found.update(task.result())
    return found


async def _one(name: str, namespace: str, fetch: Fetch) -> Documents:
    return await fetch((name,), namespace)


def wanted_by(workload: Workload, views: Views) -> tuple[str, ...]:
    """Return the references that the workload and the readings of its units want."""
    names: Iterable[str] = (
        *workload.wanted,
        *(name for view in views for name in view.reading.wanted),
    )
    return tuple(dict.fromkeys(names))
