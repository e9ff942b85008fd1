"""Read the objects of reviews without stopping the event loop.

    Review, object -> Workload, Views, or None if not in time

Small objects are read at once. What may take long is read in a thread, so that the loop answers
others meanwhile; the threads take turns by namespace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from admission.judge.judging import Views, read_views
from admission.review import Review
from admission.threads import Threads
from admission.values import NO_DOCUMENTS, Documents, Json, NodeClass, Workload
from admission.workloads import KINDS, read_workload
from admission.workloads.kind import Kinds

SMALL_BODY = 16 << 10
SMALL_UNITS = 8
SMALL_EXPANSIONS = 8
"""Dollar signs: eight variables that multiply each other stay within twenty times the body.
What is larger is read in a thread, so that the loop answers others meanwhile."""
MAX_READING = 2
"""Reviews read in threads at once. More would only share the interpreter's lock."""
MAX_UNREAD = 64
"""Reviews waiting for such a thread. Beyond it a review is late from the start."""


class Reader(Protocol):
    """Who reads the units of a workload."""

    def __call__(
        self, workload: Workload, *, classes: Sequence[NodeClass], documents: Documents
    ) -> Views:
        """Return what was understood, from whatever thread it is called."""
        ...


class ReviewReader:
    """Reads on the loop or beside it, as the size of a review tells."""

    def __init__(
        self,
        read: Reader = read_views,
        *,
        kinds: Kinds = KINDS,
        threads: Threads | None = None,
    ) -> None:
        self._kinds = kinds
        self._read_views = read
        self._threads = threads or Threads(MAX_READING)

    def of(self, kinds: Kinds) -> ReviewReader:
        """Return a reader of *kinds* that takes turns with this one."""
        return ReviewReader(self._read_views, kinds=kinds, threads=self._threads)

    async def read(
        self,
        review: Review,
        obj: Json,
        *,
        classes: Sequence[NodeClass],
        seconds: float,
        is_small: bool,
        documents: Documents = NO_DOCUMENTS,
    ) -> tuple[Workload, Views] | None:
        """Return *obj* as it was understood, None if that takes more than *seconds*.

        Raises:
            RequestError: if it is malformed.
        """
        if is_small:
            workload = self._workload(review, obj, documents)
            if len(workload.units) <= SMALL_UNITS and _is_little(documents):
                return workload, self._read_views(workload, classes=classes, documents=documents)
        if self._threads.num_waiting >= MAX_UNREAD:
            return None

        def read() -> tuple[Workload, Views]:
            workload = self._workload(review, obj, documents)
            views = self._read_views(workload, classes=classes, documents=documents)
            return workload, views

        try:
            async with asyncio.timeout(seconds):
                return await self._threads.run(read, key=review.namespace)
        except TimeoutError:
            return None

    def _workload(self, review: Review, obj: Json, documents: Documents) -> Workload:
        return read_workload(
            obj,
            api_version=review.api_version,
            kind=review.kind,
            documents=documents,
            kinds=self._kinds,
        )


def is_small(body: bytes) -> bool:
    """Return whether the object in *body* is surely read in an instant."""
    return len(body) <= SMALL_BODY and body.count(b"$") <= SMALL_EXPANSIONS


def _is_little(documents: Documents) -> bool:
    """Return whether what was fetched is surely read in an instant too."""
    texts = [text for document in documents.values() for text in document.files.values()]
    return sum(map(len, texts)) <= SMALL_BODY
