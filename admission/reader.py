"""Read the objects of reviews without stopping the event loop.

    Review, object -> Workload, Views, or None if not in time

Small objects are read at once, or remembered. What may take long is read in a thread, so that the
loop answers others meanwhile; the threads take turns by namespace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from admission.errors import RequestError
from admission.judge.views import Views, read_views
from admission.readings import RememberedViews, reading_key
from admission.review import Review
from admission.threads import Threads
from admission.turns import NoRoomError
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
"""Reviews waiting for such a thread. Beyond it a review is late from the start, or the newest of
the namespace that has the most waiting is."""


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
        self._remembered = RememberedViews()
        self._threads = threads or Threads(MAX_READING, room=MAX_READING + MAX_UNREAD)

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
        expands: bool = False,
        documents: Documents = NO_DOCUMENTS,
    ) -> tuple[Workload, Views] | None:
        """Return *obj* as it was understood, None if that takes more than *seconds*.

        Raises:
            RequestError: if it is malformed.
        """
        told: dict[str, Any] = {"classes": classes, "documents": documents}
        is_kept = False
        if is_small:
            workload = self._workload(review, obj, documents)
            is_kept = len(workload.units) <= SMALL_UNITS and _is_little(documents)
            views = self._remembered.known(workload, **told) if is_kept else None
            if is_kept and views is None and not expands:
                views = self._read_views(workload, **told)
                self._remembered.keep(workload, views, **told)
            if views is not None:
                return workload, views

        def read() -> tuple[Workload, Views]:
            workload = self._workload(review, obj, documents)
            return workload, self._read_views(workload, **told)

        try:
            async with asyncio.timeout(seconds):
                found = await self._threads.run(read, key=review.namespace)
        except (TimeoutError, NoRoomError):
            return None
        if is_kept:
            self._remembered.keep(*found, **told)
        return found

    def reads_alike(self, review: Review, obj: Json) -> bool:
        """Return whether the object of *review* is read as *obj* is, without what others say."""
        try:
            found, other = (
                reading_key(self._workload(review, each, NO_DOCUMENTS), NO_DOCUMENTS)
                for each in (review.object, obj)
            )
        except RequestError:
            return False
        return found is not None and found == other

    def _workload(self, review: Review, obj: Json, documents: Documents) -> Workload:
        return read_workload(
            obj,
            api_version=review.api_version,
            kind=review.kind,
            documents=documents,
            kinds=self._kinds,
        )


def is_small(body: bytes) -> bool:
    """Return whether the object in *body* is surely walked in an instant."""
    return len(body) <= SMALL_BODY


def expands(body: bytes) -> bool:
    """Return whether the variables in *body* may make much of a small object."""
    return body.count(b"$") > SMALL_EXPANSIONS


def _is_little(documents: Documents) -> bool:
    """Return whether what was fetched is surely read in an instant too."""
    texts = [text for document in documents.values() for text in document.files.values()]
    return sum(map(len, texts)) <= SMALL_BODY
