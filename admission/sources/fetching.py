"""Ask for several documents at once, within one time limit, and remember the answers for a while.

    references, namespace -> Documents

Never raises: what cannot be had is a Document with the reason.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog

from admission.sources.references import (
    CLUSTER,
    Origin,
    Reference,
    ReferenceProblem,
    parse_reference,
)
from admission.threads import Threads
from admission.values import Document, Documents

MAX_REMEMBERED = 1000
MAX_REMEMBERED_BYTES = 64 << 20
MAX_FETCHES = 8
"""Documents of the cluster asked for at once, each in a thread; as many of the Hub, as many of
other hosts. A Hub that hangs holds up no ConfigMap."""
MAX_WAITING = 128
"""Documents that one namespace may have asked for and not got yet."""

_log = structlog.get_logger()


class Source(Protocol):
    """Who has documents of one origin. Called in a thread; may block within its own limits."""

    def fetch(self, reference: Reference, *, namespace: str) -> Document:
        """Return the document, or one that says why it cannot be had."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How long answers of one origin are remembered."""

    seconds: float
    failure_seconds: float


KEPT: Mapping[Origin, Kept] = {
    **dict.fromkeys(CLUSTER, Kept(seconds=5.0, failure_seconds=1.0)),
    Origin.HUB: Kept(seconds=3600.0, failure_seconds=60.0),
    Origin.URL: Kept(seconds=60.0, failure_seconds=10.0),
}
"""A gang of pods asks once; a ConfigMap that was just applied is seen a moment later."""


class Fetcher:
    """Fetches documents from the sources there are. For one event loop."""

    def __init__(
        self,
        sources: Mapping[Origin, Source],
        *,
        seconds: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = sources
        self._seconds = seconds
        self._clock = clock
        cluster = Threads(MAX_FETCHES)
        self._threads: Mapping[Origin, Threads] = {
            **dict.fromkeys(CLUSTER, cluster),
            Origin.HUB: Threads(MAX_FETCHES),
            Origin.URL: Threads(MAX_FETCHES),
        }
        self._kept: OrderedDict[tuple[str, str], tuple[float, Document]] = OrderedDict()
        self._size = 0
        self._asked: dict[tuple[str, str], asyncio.Task[Document]] = {}
        self._waiting: Counter[str] = Counter()
        """Documents asked for and not had yet, by namespace."""

    @property
    def seconds(self) -> float:
        """Return how long all documents of one job may take together."""
        return self._seconds

    async def fetch(
        self, wanted: Iterable[str], *, namespace: str, seconds: float | None = None
    ) -> Documents:
        """Return a document for each of *wanted*; one that is not there in time says so.

        What is late goes on and is remembered for the next review.
        """
        limit = self._seconds if seconds is None else min(self._seconds, seconds)
        tasks = {text: self._task(text, namespace) for text in dict.fromkeys(wanted)}
        waiting = [task for task in tasks.values() if isinstance(task, asyncio.Task)]
        if waiting:
            await asyncio.wait(waiting, timeout=max(0.0, limit))
        return {text: _outcome(found, limit) for text, found in tasks.items()}

    def _task(self, text: str, namespace: str) -> asyncio.Task[Document] | Document:
        key = (namespace, text)
        kept = self._kept.get(key)
        if kept is not None and kept[0] > self._clock():
            self._kept.move_to_end(key)
            return kept[1]
        if key not in self._asked:
            try:
                reference = parse_reference(text)
            except ReferenceProblem as error:
                return Document(problem=str(error))
            source = self._sources.get(reference.origin)
            if source is None:
                return Document(problem=_ABSENT[reference.origin])
            if self._waiting[namespace] >= MAX_WAITING:
                return Document(problem="is not asked for: its namespace waits for too many others")
            task = asyncio.create_task(self._ask(source, reference, key))
            task.add_done_callback(lambda _: self._had(key))
            self._asked[key] = task
            self._waiting[namespace] += 1
        return self._asked[key]

    def _had(self, key: tuple[str, str]) -> None:
        self._asked.pop(key, None)
        self._waiting[key[0]] -= 1
        if not self._waiting[key[0]]:
            del self._waiting[key[0]]

    async def _ask(self, source: Source, reference: Reference, key: tuple[str, str]) -> Document:
        namespace = key[0]
        try:
            found = await self._threads[reference.origin].run(
                lambda: source.fetch(reference, namespace=namespace), key=namespace
            )
        except Exception as error:
            # As text: some renderers of tracebacks add the values of variables, a token among them.
            trace = "".join(traceback.format_exception(error))
            _log.error(
                "document could not be fetched",
                reference=key[1],
                namespace=namespace,
                traceback=trace,
            )
            found = Document(problem="could not be fetched, which is our fault")
        kept = KEPT[reference.origin]
        self._keep(key, found, kept.failure_seconds if found.problem else kept.seconds)
        return found

    def _keep(self, key: tuple[str, str], found: Document, seconds: float) -> None:
        self._forget(key)
        self._kept[key] = (self._clock() + seconds, found)
        self._size += _size(found)
        while len(self._kept) > MAX_REMEMBERED or self._size > MAX_REMEMBERED_BYTES:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: tuple[str, str]) -> None:
        old = self._kept.pop(key, None)
        if old is not None:
            self._size -= _size(old[1])


_ABSENT: Mapping[Origin, str] = {
    **dict.fromkeys(CLUSTER, "is not read here"),
    Origin.HUB: "is not asked for: the settings switch the Hugging Face Hub off",
    Origin.URL: "is not asked for: the settings allow no host",
}


def _outcome(found: asyncio.Task[Document] | Document, seconds: float) -> Document:
    if isinstance(found, Document):
        return found
    if not found.done() or found.cancelled():
        return Document(problem=f"took longer than {seconds:.1f} s")
    return found.result()


def _size(document: Document) -> int:
    """Return the bytes that *document* takes here: a text of one emoji takes four a character."""
    parts = (*document.files.items(), *document.blobs.items())
    return sum(sys.getsizeof(key) + sys.getsizeof(content) for key, content in parts)
