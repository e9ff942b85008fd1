"""What the webhook knows of the cluster right now.

    snapshots of nodes and namespaces -> node classes, modes

Lives on the event loop; the classes are computed in a thread, a moment after a change.
A removed node's cards count for some days more, since pools scale to zero.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import orjson
import structlog

from admission.capacity.classes import classes_of
from admission.codes import Mode, Steer
from admission.errors import RequestError, SettingsError
from admission.node_settings import NodeSettings
from admission.values import Json, NodeClass
from estimator.documents import read_documents
from estimator.errors import Problem, SpecError

MODE_LABEL = "vramgate.dev/mode"
STEER_LABEL = "vramgate.dev/steer"
WEBHOOK_LABEL = "vramgate.dev/webhook"
MOST_DEPARTED = 500
SECONDS_PER_DAY = 86400.0
SETTLE_SECONDS = 0.2
"""Changes within it are taken together: a pool of a hundred nodes starts at once."""
FAULT_SECONDS = 30.0
"""After a fault of ours, or without a thread to compute in, until it is tried again."""
REVISIT_SECONDS = 3600.0
"""How often removed nodes are looked at even if nothing changes."""
_log = structlog.get_logger()
_NAMING_LABELS = frozenset({"kubernetes.io/hostname", "nvidia.com/gfd.timestamp"})
"""Labels that tell one node from another and say nothing of its cards."""


class DepartedNodes:
    """The last node of each kind that is gone: one stands for all of its kind."""

    def __init__(self, *, keep_seconds: float) -> None:
        self._keep_seconds = keep_seconds
        self._left: OrderedDict[bytes, tuple[Json, float]] = OrderedDict()

    def keep(self, seconds: float) -> None:
        """Keep what is gone for *seconds*, what is gone already included."""
        self._keep_seconds = seconds

    def update(
        self, before: Mapping[str, Json], after: Mapping[str, Json], *, now: float
    ) -> tuple[Json, ...]:
        """Return the nodes that still count though they are not in *after*.

        A kind that is there again, or has been gone for longer than it is kept, is forgotten.
        """
        for name in before.keys() - after.keys():
            node = before[name]
            if classes_of((node,)):
                self._left[_shape(node)] = (node, now)
        if not self._left:
            return ()
        for shape in {_shape(node) for node in after.values()}:
            self._left.pop(shape, None)
        for shape, (_, since) in list(self._left.items()):
            if now - since >= self._keep_seconds or len(self._left) > MOST_DEPARTED:
                del self._left[shape]
        return tuple(node for node, _ in self._left.values())


class Inventory:
    """Node classes and the modes of namespaces; `is_listed` once both are known."""

    def __init__(
        self,
        *,
        keep_seconds: float,
        namespaces_expected: bool,
        settings: NodeSettings | None = None,
        changed: Callable[[tuple[NodeClass, ...]], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        fault_seconds: float = FAULT_SECONDS,
    ) -> None:
        self._fault_seconds = fault_seconds
        self.classes: tuple[NodeClass, ...] = ()
        self._departed = DepartedNodes(keep_seconds=keep_seconds)
        self._settings = settings
        self._modes: Mapping[str, Mode] = {}
        self._steers: Mapping[str, Steer] = {}
        self._ignored: frozenset[str] = frozenset()
        self._nodes: Mapping[str, Json] = {}
        self._news: Mapping[str, Json] | None = None
        self._arrived = asyncio.Event()
        self._nodes_listed = False
        self._all_listed = asyncio.Event()
        self._namespaces_listed = not namespaces_expected
        self._changed = changed
        self._clock = clock

    @property
    def is_listed(self) -> bool:
        """Return whether nodes and namespaces were read at least once."""
        return self._nodes_listed and self._namespaces_listed

    async def listed(self) -> None:
        """Wait until `is_listed`."""
        await self._all_listed.wait()

    def _note_listed(self) -> None:
        if self.is_listed:
            self._all_listed.set()

    def mode_of(self, namespace: str) -> Mode | None:
        """Return the mode that the namespace's label asks for, if it is one."""
        return self._modes.get(namespace)

    def steer_of(self, namespace: str) -> Steer | None:
        """Return how hard the namespace's label wants pods to be steered, if it says so."""
        return self._steers.get(namespace)

    def is_ignored(self, namespace: str) -> bool:
        """Return whether the namespace's label keeps us away."""
        return namespace in self._ignored

    def is_there(self, node: str) -> bool:
        """Return whether the cluster has the node now: removed ones count for some days more."""
        return node in self._nodes

    def configure(self, settings: NodeSettings) -> None:
        """Take the classes, pools and times of *settings*; the cards are computed again."""
        self._settings = settings
        self._departed.keep(settings.keep_days * SECONDS_PER_DAY)
        self._arrived.set()

    def set_nodes(self, nodes: Mapping[str, Json]) -> None:
        """Take *nodes* as what the cluster has now."""
        self._news = nodes
        self._arrived.set()

    def set_namespaces(self, namespaces: Mapping[str, Json]) -> None:
        """Take *namespaces* as those there are now."""
        found = {name: mode_label(item["metadata"]) for name, item in namespaces.items()}
        self._modes = {name: mode for name, mode in found.items() if mode is not None}
        steers = {name: steer_label(item["metadata"]) for name, item in namespaces.items()}
        self._steers = {name: steer for name, steer in steers.items() if steer is not None}
        self._ignored = frozenset(
            name for name, item in namespaces.items() if is_ignored(item["metadata"])
        )
        self._namespaces_listed = True
        self._note_listed()

    async def run(self) -> None:
        """Keep the classes up to date until cancelled; a fault leaves those that are known."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REVISIT_SECONDS):
                    await self._arrived.wait()
            self._arrived.clear()
            try:
                await self.refresh()
            except Exception:
                _log.exception("nodes not taken")
                self._arrived.set()
                await asyncio.sleep(self._fault_seconds)
            await asyncio.sleep(SETTLE_SECONDS)

    async def refresh(self) -> None:
        """Compute the classes of the newest nodes."""
        before, after = self._nodes, self._nodes if self._news is None else self._news
        self.classes = await asyncio.to_thread(self._compute, before, after)
        self._nodes = after
        self._nodes_listed = self._nodes_listed or self._news is not None
        self._note_listed()
        self._changed(self.classes)

    def _compute(
        self, before: Mapping[str, Json], after: Mapping[str, Json]
    ) -> tuple[NodeClass, ...]:
        departed = self._departed.update(before, after, now=self._clock())
        found = classes_of((*after.values(), *departed), self._settings)
        # What is remembered of the same cluster stays good: most of what nodes report is no news.
        return self.classes if found == self.classes else found


def mode_label(metadata: Json) -> Mode | None:
    """Return the mode that an object's label asks for; a value that is no mode asks for none."""
    value = _label(metadata, MODE_LABEL)
    return next((mode for mode in Mode if mode == value), None)


def steer_label(metadata: Json) -> Steer | None:
    """Return how hard an object's label wants it to be steered; another value asks for nothing."""
    value = _label(metadata, STEER_LABEL)
    return next((steer for steer in Steer if steer == value), None)


def is_ignored(metadata: Json) -> bool:
    """Return whether an object's label keeps us away from it, or from all in a namespace."""
    return _label(metadata, WEBHOOK_LABEL) == "ignore"


def _label(metadata: Json, name: str) -> object:
    labels = metadata.get("labels")
    return labels.get(name) if isinstance(labels, Mapping) else None


def read_nodes(path: Path) -> Mapping[str, Json]:
    """Return the nodes of a file: Node objects or lists of them, JSON or YAML.

    Raises:
        SettingsError: if the file cannot be read or holds anything else.
    """
    try:
        documents = list(read_documents(path.read_text(encoding="utf-8"), path=str(path)))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise SettingsError(
            [Problem(path=f"nodes.file: {path}", message=reason.lower())]
        ) from error
    except SpecError as error:
        raise SettingsError(error.problems) from error
    found = [node for document in documents for node in _nodes_in(document, path)]
    try:
        classes_of(found)
    except RequestError as error:
        raise SettingsError([Problem(path=f"nodes.file: {path}", message=error.message)]) from error
    return {str(node["metadata"]["name"]): node for node in found}


def _nodes_in(document: object, path: Path) -> Iterator[Json]:
    if document is None:
        return
    kind = document.get("kind") if isinstance(document, dict) else None
    if isinstance(document, dict) and kind in ("List", "NodeList"):
        for item in document.get("items") or ():
            # In a NodeList the items say no kind of their own.
            yield from _nodes_in({"kind": "Node", **item} if isinstance(item, dict) else item, path)
        return
    if not isinstance(document, dict) or kind != "Node":
        message = f"a document of kind {str(kind)[:60]!r} is no Node or list of them"
        raise SettingsError([Problem(path=f"nodes.file: {path}", message=message)])
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        message = "a node has no metadata.name"
        raise SettingsError([Problem(path=f"nodes.file: {path}", message=message)])
    yield document


def _shape(node: Json) -> bytes:
    """Return what nodes of one pool have in common."""
    labels = node["metadata"].get("labels") or {}
    plain = {key: value for key, value in labels.items() if key not in _NAMING_LABELS}
    status = node.get("status") or {}
    cards = {key: value for key, value in (status.get("capacity") or {}).items() if "/" in key}
    taints = (node.get("spec") or {}).get("taints") or []
    lasting = [
        taint for taint in taints if not str(taint.get("key")).startswith("node.kubernetes.io/")
    ]
    return orjson.dumps([plain, cards, lasting], option=orjson.OPT_SORT_KEYS)
