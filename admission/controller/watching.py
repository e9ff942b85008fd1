"""Follow pods, and every training kind that the API server serves, into the store.

    client -> watches -> Store

Kinds that are not served are looked for again every minute: their operator may be installed later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from admission.cluster import Client, Resource
from admission.controller.duty import Follow
from admission.controller.pods import PODS
from admission.controller.refs import Discovery, root_of
from admission.controller.store import Store
from admission.controller.tracked import TRACKED, tracked_resource
from admission.errors import ClusterError
from admission.outages import Outages
from admission.values import Json
from admission.watch import Changes, Watch

REDISCOVER_SECONDS = 60.0
_log = structlog.get_logger()


class Watching:
    """The controller's watches. Lives on one event loop."""

    def __init__(
        self,
        client: Client,
        discovery: Discovery,
        store: Store,
        *,
        outages: Outages,
        also: Sequence[tuple[Follow, Callable[[Changes], None]]] = (),
    ) -> None:
        """Follow for *store*, and *also* what duties follow themselves."""
        self._client = client
        self._discovery = discovery
        self._store = store
        self._outages = outages
        self._missing = {(version, kind) for version, kinds in TRACKED.items() for kind in kinds}
        self._also = list(also)
        self._watches: dict[str, Watch] = {}

    async def run(self) -> None:
        """Follow until cancelled."""
        self._follow(PODS, self._store.take_pods)
        try:
            while True:
                await self.look()
                await asyncio.sleep(REDISCOVER_SECONDS)
        finally:
            for watch in self._watches.values():
                watch.stop()

    async def look(self) -> None:
        """Start to follow what is served by now, and was not before."""
        self._missing -= await self._found(self._missing)
        self._store.expect_no_more()
        self._also = [each for each in self._also if not await self._follow_also(*each)]

    async def _found(self, missing: set[tuple[str, str]]) -> set[tuple[str, str]]:
        """Start to follow those of *missing* that are served by now; return them."""
        found = set()
        for api_version, kind in sorted(missing):
            try:
                served = await asyncio.to_thread(self._discovery.served, api_version, kind)
            except ClusterError as error:
                _log.warning("kinds not asked", api_version=api_version, reason=str(error))
                continue
            if served is None:
                continue
            path = f"{root_of(api_version)}/{served.plural}"
            group = api_version.rpartition("/")[0]

            def take(path: str, changes: Changes, kind: tuple[str, str] = (group, kind)) -> None:
                self._store.take_workloads(path, kind, changes)

            self._follow(tracked_resource(api_version, kind, path), take)
            found.add((api_version, kind))
        return found

    async def _follow_also(self, follow: Follow, take: Callable[[Changes], None]) -> bool:
        """Start to follow what a duty wants, if it is served by now; return whether it is."""
        for api_version in follow.versions:
            try:
                served = await asyncio.to_thread(self._discovery.served, api_version, follow.kind)
            except ClusterError as error:
                _log.warning("kinds not asked", api_version=api_version, reason=str(error))
                continue
            if served is None:
                continue

            def cut(obj: Json, api_version: str = api_version) -> Json | None:
                return follow.cut(obj, api_version)

            path = f"{root_of(api_version)}/{served.plural}"
            self._start(Resource(path=path, cut=cut, in_namespaces=served.in_namespaces), take)
            _log.info("following", kind=follow.kind, api_version=api_version)
            return True
        return False

    def _follow(self, resource: Resource, take: Callable[[str, Changes], None]) -> None:
        self._store.expect(resource.path)
        self._start(resource, partial(take, resource.path))

    def _start(self, resource: Resource, take: Callable[[Changes], None]) -> None:
        loop = asyncio.get_running_loop()

        def changed(changes: Changes) -> None:
            # The loop may be closed by the time a watch's thread says its last.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(take, changes)

        watch = Watch(self._client, resource, changed=changed, outages=self._outages)
        self._watches[resource.path] = watch
        watch.start()
