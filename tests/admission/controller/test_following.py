"""Duties follow kinds of their own, of the newest version that is served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from admission.cluster import Resource
from admission.controller.acting import Acting
from admission.controller.acts import NOTHING, Look
from admission.controller.duty import Follow, Quiet
from admission.controller.refs import Discovery
from admission.controller.store import Store
from admission.controller.watching import Watching
from admission.controller.working import Working
from admission.objects import Found
from admission.outages import Outages
from admission.values import Json
from admission.watch import Changes
from tests.admission.controller.cluster import Cluster

NEW, OLD = "example.com/v1beta2", "example.com/v1beta1"


class Served(Cluster):
    """Serves a kind `Thing` in some versions, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: set[str] = set()

    def read(self, path: str) -> Found:
        """Return what is served."""
        version = path.removeprefix("/apis/")
        things = [{"name": "things", "kind": "Thing", "namespaced": False}]
        document = {"resources": things} if version in self.versions else None
        return Found(document=document, now=self.now)


class Follows(Quiet):
    """A duty that follows things."""

    name = "things"

    def __init__(self) -> None:
        self.taken: list[Changes] = []

    @property
    def follows(self) -> tuple[Follow, ...]:
        """Return what it follows."""
        return (Follow(versions=(NEW, OLD), kind="Thing", cut=_with_version, take=self._take),)

    def _take(self, changes: Changes, add: Callable[[str, float], None]) -> None:
        self.taken.append(changes)
        for key in changes:
            add(key, 0.0)

    async def look(self, _: str) -> Look:
        """Find nothing."""
        return NOTHING


def _with_version(obj: Json, api_version: str) -> Json:
    return {**obj, "version": api_version}


class Watches(Watching):
    """Keeps what would be watched."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.started: dict[str, tuple[Resource, Callable[[Changes], None]]] = {}

    def _start(self, resource: Resource, take: Callable[[Changes], None]) -> None:
        self.started[resource.path] = (resource, take)


@pytest.mark.parametrize(
    ("served", "path"),
    [({NEW, OLD}, f"/apis/{NEW}/things"), ({OLD}, f"/apis/{OLD}/things"), (set(), None)],
)
async def test_the_newest_version_that_is_served_is_followed(
    served: set[str], path: str | None
) -> None:
    """And nothing where the kind is not there; its objects come with the version."""
    cluster: Any = Served()
    cluster.versions = served
    duty = Follows()
    watches, working = _watches(cluster, duty)

    await watches.look()

    assert set(watches.started) == ({path} if path else set())
    if path is not None:
        resource, take = watches.started[path]
        kept = resource.cut({"metadata": {"name": "one"}})
        assert kept is not None
        assert kept["version"] == max(served)
        take({"one": {}})
        assert duty.taken == [{"one": {}}]
        assert working.length == 1


async def test_a_kind_that_comes_later_is_found_once() -> None:
    """Its operator was installed meanwhile."""
    cluster: Any = Served()
    watches, _ = _watches(cluster, Follows())
    await watches.look()
    assert watches.started == {}

    cluster.versions = {OLD}
    await watches.look()
    cluster.versions = {NEW, OLD}
    await watches.look()

    assert set(watches.started) == {f"/apis/{OLD}/things"}


def _watches(cluster: Any, duty: Follows) -> tuple[Watches, Working]:
    discovery = Discovery(cluster)
    working = Working([duty], Acting(cluster, discovery), may_act=lambda: True)
    client: Any = None
    store = Store()
    watches = Watches(client, discovery, store, outages=Outages(), also=working.followed())
    return watches, working
