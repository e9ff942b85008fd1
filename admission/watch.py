"""Follow objects of a cluster.

    list + watch (a thread each) -> immutable snapshots, or changes, handed to whoever asked

An API server that is away, or takes connections and answers none, costs nothing that is known: it
is asked again until it answers. Nothing is written to the cluster here.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import structlog
import urllib3
from kubernetes.client.exceptions import ApiException

from admission.cluster import CONNECT_SECONDS, Client, Resource
from admission.errors import RequestError
from admission.outages import Outages
from admission.values import Json

WATCH_SECONDS = (240, 360)
LONGEST_PAUSE_SECONDS = 30.0
GONE, TOO_MANY = 410, 429
MAX_LINE_BYTES = 16 << 20
"""Of one change. An object of the API server has 1.5 MiB, so more is somebody else's answer."""

_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RequestError, TypeError, ValueError)
"""What reading an object may raise whose fields are not what they should be."""

Snapshot = Mapping[str, Json]
"""Name -> object, cut down. A new one for every change; never changed itself."""

Changes = Mapping[str, Json | None]
"""Name -> object as it is now, None if it is gone or of no interest any more."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long a watch waits, in seconds."""

    first_pause: float = 1.0
    """After a failure; twice as long after each further one."""
    answer: float = 15.0
    """For the head of an answer, and for each piece of a list: longer is no answer."""
    silence: float = 75.0
    """Of an open watch. Bookmarks come every minute, though not of a kind that never changed: a
    watch that is silent for longer is asked again, and that is answered or not.
    """


class _GoneError(Exception):
    """The version we wanted to go on from is too old: list again."""


class Watch:
    """A thread that keeps a snapshot of one resource up to date."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        publish: Callable[[Snapshot], None] | None = None,
        *,
        changed: Callable[[Changes], None] | None = None,
        outages: Outages | None = None,
        times: Times | None = None,
    ) -> None:
        """Follow *resource*: *publish* gets all of it at each change, *changed* what changed.

        Where there are many objects that change often, *changed* alone costs little. It is called
        after every list, even where nothing changed: then everything is known.
        """
        self._client = client
        self._resource = resource
        self._publish = publish
        self._changed = changed
        self._outages = outages or Outages()
        self._times = times or Times()
        self._items: dict[str, Json] = {}
        self._fault = ""
        """The fault of ours that was told last."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"watch {resource.path}", daemon=True
        )

    def start(self) -> None:
        """Start following. *publish* is called in the watch's own thread."""
        self._thread.start()

    def stop(self) -> None:
        """Publish nothing any more. The thread ends with its connection, at latest with us."""
        self._stopping.set()

    def join(self, seconds: float) -> None:
        """Wait for the thread's end."""
        self._thread.join(seconds)

    def _run(self) -> None:
        version: str | None = None
        pause = self._times.first_pause
        while not self._stopping.is_set():
            try:
                if version is None:
                    version = self._list()
                response = self._open(version)
                self._outages.over(self._resource.followed)
                for seen in self._events(response):
                    version = seen
                pause = self._times.first_pause
                continue
            except _GoneError:
                _log.info("watch too old", path=self._resource.path)
                version = None
            except (ApiException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                if not self._stopping.is_set():
                    self._outages.failed(
                        self._resource.followed, _reason(error), is_away=_is_away(error)
                    )
            except Exception as error:
                # Nobody would notice a thread that ended: what is known would grow old for ever.
                self._failed(error)
            self._stopping.wait(pause * random.uniform(0.5, 1.5))  # noqa: S311 (no secret)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _failed(self, error: Exception) -> None:
        """Tell a fault of ours, or an answer that no API server gives; its traceback once."""
        reason = f"fault: {_reason(error)}"
        if reason != self._fault:
            _log.error("watch failed", path=self._resource.path, exc_info=error)
        self._fault = reason
        self._outages.failed(self._resource.followed, reason, is_away=False)

    def _list(self) -> str:
        """Fetch everything, publish it, and return its version."""
        items: dict[str, Json] = {}
        query = {"limit": str(self._resource.page)}
        while True:
            page = _document(self._get(query, listing=True).data)
            for item in page.get("items") or ():
                name, kept = self._kept(item)
                if kept is not None:
                    items[name] = kept
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                break
            query["continue"] = metadata["continue"]
        before, self._items = self._items, items
        gone: dict[str, Json | None] = dict.fromkeys(before.keys() - items.keys())
        new = {name: item for name, item in items.items() if before.get(name) != item}
        self._tell(gone | new)
        return str(metadata.get("resourceVersion") or "0")

    def _open(self, version: str) -> urllib3.BaseHTTPResponse:
        """Ask for every change after *version*, and return the answer once it has begun."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(random.randint(*WATCH_SECONDS)),  # noqa: S311 (no secret)
        }
        response = self._get(query, listing=False)
        # Changes may be far apart, unlike the answer to a question. None: it ends with this answer.
        connection = getattr(response.connection, "sock", None)
        if connection is not None:
            connection.settimeout(self._times.silence)
        return response

    def _events(self, response: urllib3.BaseHTTPResponse) -> Iterator[str]:
        """Take in every change that *response* tells; yield the version after each.

        Raises:
            _GoneError: if the API server no longer has the changes since then.
        """
        try:
            for line in _lines(response):
                if self._stopping.is_set():
                    return
                yield self._take(_document(line))
        except urllib3.exceptions.ReadTimeoutError:
            return
        finally:
            response.close()

    def _take(self, event: Json) -> str:
        kind, item = event.get("type"), event.get("object") or {}
        if kind == "ERROR":
            if item.get("code") == GONE:
                raise _GoneError
            raise ApiException(status=item.get("code"), reason=item.get("reason"))
        if kind != "BOOKMARK":
            self._change(kind, item)
        return str((item.get("metadata") or {}).get("resourceVersion") or "0")

    def _change(self, kind: object, item: Json) -> None:
        """Publish unless nothing changed that is kept: nodes report their health all the time."""
        name, kept = self._kept(item)
        before = self._items.get(name)
        if kind == "DELETED" or kept is None:
            self._items.pop(name, None)
        else:
            self._items[name] = kept
        if (after := self._items.get(name)) != before:
            self._tell({name: after})

    def _kept(self, item: Json) -> tuple[str, Json | None]:
        """Return the name of *item* and what is kept of it.

        One that cannot be read is left out: it must not cost what is known of the others.
        """
        name = self._resource.key(item)
        try:
            return name, self._resource.cut(item)
        except _UNREADABLE as error:
            _log.error("object left out", path=self._resource.path, name=name, exc_info=error)
            return name, None

    def _tell(self, changes: Changes) -> None:
        if self._stopping.is_set():
            return
        if self._publish is not None:
            self._publish(dict(self._items))
        if self._changed is not None:
            self._changed(changes)

    def _get(self, query: Mapping[str, str], *, listing: bool) -> urllib3.BaseHTTPResponse:
        request = self._client.param_serialize(
            "GET",
            self._resource.path,
            query_params=list(self._resource.query(query).items()),
            header_params={"Accept": self._resource.accept(listing=listing)},
            auth_settings=["BearerToken"],
        )
        answer: Any = self._client.call_api(
            *request, _request_timeout=(CONNECT_SECONDS, self._times.answer)
        )
        response: urllib3.BaseHTTPResponse = answer.response
        if response.status == GONE:
            response.close()
            raise _GoneError
        if response.status != 200:
            response.close()
            raise ApiException(status=response.status, reason=response.reason)
        return response


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield each line of *response* as soon as it is whole.

    Raises:
        ValueError: if one is longer than any change.
    """
    rest = bytearray()
    for chunk in response.stream(amt=None):
        *ends, last = chunk.split(b"\n")
        for end in ends:
            if line := bytes(rest + end):
                yield line
            rest.clear()
        rest += last
        if len(rest) > MAX_LINE_BYTES:
            raise ValueError(f"a line of more than {MAX_LINE_BYTES} bytes")


def _document(text: bytes) -> Json:
    """Return the object in *text*.

    Raises:
        ValueError: if it is anything else.
    """
    document = orjson.loads(text)
    if not isinstance(document, dict):
        raise ValueError(f"an answer that is no object but {type(document).__name__}")
    return document


def _reason(error: Exception) -> str:
    if isinstance(error, ApiException):
        return f"{error.status} {error.reason}"
    return f"{type(error).__name__}: {error}"[:300]


def _is_away(error: Exception) -> bool:
    """Return whether *error* is of an API server that does not answer, or that is in trouble."""
    if isinstance(error, ApiException):
        status = error.status
        return status is None or status >= 500 or status == TOO_MANY
    return not isinstance(error, ValueError)
