"""A controller's duty in a cluster in memory: told of changes, asked, and carried out.

    objects, nodes, estimates by batch size -> Scene; duty -> what is in the cluster afterwards

Time goes by only when a test says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from admission.capacity.classes import classes_of
from admission.controller.acting import Acting, Outcome
from admission.controller.duty import Duty
from admission.controller.judging import Judges
from admission.controller.learning import Learning
from admission.controller.parts import Parts
from admission.controller.pods import PodView, cut_pod
from admission.controller.refs import Discovery
from admission.controller.store import Store
from admission.controller.tracked import TRACKED, tracked_of
from admission.controller_settings import ControllerSettings
from admission.errors import ClusterError
from admission.estimates import EstimatePool
from admission.handling.asked import NoBooks
from admission.handling.judging import Judging
from admission.handling.mutating import Mutating
from admission.handling.policies import Policies
from admission.learning.floors import Learnt
from admission.objects import WritableObjects
from admission.policy_settings import PolicySettings, SteeringSettings
from admission.reader import ReviewReader
from admission.values import Document, Documents, Json
from tests.admission.controller.cluster import RESOURCES, Cluster
from tests.admission.steer.scene import A10, T4, nodes
from tests.admission.test_handler import FakeCluster, FakeWorkers
from tests.builders import spec_document

NAMESPACE = "vramgate-system"
SPEC = "vramgate.dev/spec"
SMALL, MIDDLE, HUGE = 100, 200, 400
"""Batches that take 10, 20 and 40 GiB: any card, an A10 alone, none."""
PATIENCE_SECONDS = 20.0
"""What a look waits for an estimate at most, of the machine's own time."""


class Cards(FakeCluster):
    """The inventory: nodes, and what labels of namespaces say."""

    def __init__(self, *found: dict[str, Any]) -> None:
        super().__init__(*found)
        self.ignored: set[str] = set()
        self.nodes = {each["metadata"]["name"] for each in found}

    def is_ignored(self, namespace: str) -> bool:
        """Return whether a namespace's label keeps us away."""
        return namespace in self.ignored

    def is_there(self, node: str) -> bool:
        """Return whether the node is there now."""
        return node in self.nodes

    def become(self, *found: dict[str, Any]) -> None:
        """Have other nodes."""
        self._classes = classes_of(found)
        self.nodes = {each["metadata"]["name"] for each in found}


class Shelf:
    """Documents that objects refer to; what is not on it is not there."""

    seconds = 1.0

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}

    async def fetch(
        self, wanted: Sequence[str], *, namespace: str, seconds: float | None = None
    ) -> Documents:
        """Return what is on it."""
        del namespace, seconds
        missing = Document(problem="is not there")
        return {name: self.documents.get(name, missing) for name in wanted}


class Scene:
    """One duty and everything around it."""

    def __init__(
        self,
        *,
        steering: SteeringSettings | None = None,
        policy: Mapping[str, Any] | None = None,
        patience: float = PATIENCE_SECONDS,
        **settings: Any,
    ) -> None:
        self.cluster = Cluster()
        self.cards = Cards(*nodes((T4, A10)))
        self.shelf = Shelf()
        self.workers = FakeWorkers()
        self.store = Store()
        self.outcomes: list[Outcome] = []
        objects: Any = self.cluster
        inventory: Any = self.cards
        discovery = Discovery(objects)
        loop = asyncio.get_running_loop()
        policies = Policies(
            policy=PolicySettings.model_validate({"mode": "enforce", **(policy or {})}),
            steering=steering or SteeringSettings(),
            cluster=self.cards,
        )
        judging = Judging(
            reader=ReviewReader(),
            sources=self.shelf,
            clock=loop.time,
            learnt=Learnt(),
        )
        self.judges = Judges(
            objects=objects,
            discovery=discovery,
            pool=EstimatePool(self.workers),
            judging=judging,
            mutating=Mutating(judging=judging, policies=policies, metrics=NoBooks()),
            policies=policies,
            seconds=patience,
            clock=loop.time,
        )
        self.counted: list[object] = []
        """What was told for the first time, and every move."""
        self._learning = Learning(objects, namespace=NAMESPACE, now=lambda: self.cluster.now)
        self.acting = self._acting(objects, discovery)
        exposition: Any = None
        self.parts = Parts(
            settings=ControllerSettings(**settings),
            store=self.store,
            judges=self.judges,
            inventory=inventory,
            exposition=exposition,
            namespace=NAMESPACE,
            now=lambda: self.cluster.now,
        )
        self._duty: Duty | None = None
        self._due: dict[str, float] = {}
        self._seen: dict[str, str] = {}

    def begin(self, duty: Duty) -> None:
        """Have *duty* at work, as a controller that has just started: it sees all there is."""
        self._duty, self._due, self._seen = duty, {}, {}
        self.acting = self._acting(self.acting._objects, self.acting._discovery)

    def _acting(self, objects: WritableObjects, discovery: Discovery) -> Acting:
        return Acting(
            objects,
            discovery,
            moved=self.counted.append,
            told=self.counted.append,
            learn=self._learning.learn,
            now=lambda: self.cluster.now,
        )

    async def work(self, seconds: float = 0.0) -> None:
        """Let *seconds* go by, and look at everything that is due until nothing is."""
        end = self._now + seconds
        self._hear()
        while due := [(at, key) for key, at in self._due.items() if at <= end]:
            at, key = min(due)
            self.cluster.wait(seconds=max(0.0, at - self._now))
            await self._look(key)
            self._hear()
        self.cluster.wait(seconds=max(0.0, end - self._now))

    def other_cards(self, *found: dict[str, Any]) -> None:
        """Have other nodes, and tell the duty."""
        self.cards.become(*found)
        assert self._duty is not None
        self._duty.classes_changed(self._add)

    @property
    def said(self) -> list[tuple[str, str]]:
        """Return whom the Events are about and why, in the order of their making."""
        events = self.cluster.events
        return [(each["involvedObject"]["name"], each["reason"]) for each in events]

    @property
    def writes(self) -> list[tuple[str, str]]:
        """Return verb and path of all writes but Events."""
        return [each for each in self.cluster.writes if "/events/" not in each[1]]

    @property
    def _now(self) -> float:
        return self.cluster.now.timestamp()

    def _add(self, key: str, after: float = 0.0) -> None:
        due = self._now + after
        self._due[key] = min(due, self._due.get(key, due))

    async def _look(self, key: str) -> None:
        assert self._duty is not None
        del self._due[key]
        try:
            look = await self._duty.look(key)
        except ClusterError:
            self._add(key, 1.0)
            return
        for act in look.acts:
            outcome = self.acting.act(act)
            self.outcomes.append(outcome)
            if outcome is Outcome.AGAIN:
                self._add(key, 1.0)
                return
        if look.again_seconds is not None:
            self._add(key, look.again_seconds)

    def _hear(self) -> None:
        """Tell store and duty of what has changed since."""
        assert self._duty is not None
        for path in [*self._seen.keys() - self.cluster.objects.keys()]:
            del self._seen[path]
            self._take(path, None)
        for path, obj in list(self.cluster.objects.items()):
            version = obj["metadata"]["resourceVersion"]
            if self._seen.get(path) != version and "/events/" not in path:
                self._seen[path] = version
                self._take(path, obj)

    def _take(self, path: str, obj: Json | None) -> None:
        assert self._duty is not None
        collection, _, name = path.rpartition("/")
        namespace = collection.split("/")[-2]
        key = f"{namespace}/{name}"
        if collection.endswith("/pods"):
            item = cut_pod(obj) if obj is not None else None
            self.store.take_pods("pods", {key: item})
            if item is not None:
                self._duty.pod_changed(PodView(item), self._add)
            return
        version, kind = _kind_of(collection)
        if kind not in TRACKED.get(version, ()):
            return
        item = None
        if obj is not None:
            item = {"tracked": tracked_of(obj, api_version=version, kind=kind)}
        self.store.take_workloads(collection, (version.rpartition("/")[0], kind), {key: item})
        if item is not None:
            self._duty.workload_changed(item["tracked"], self._add)


def _kind_of(collection: str) -> tuple[str, str]:
    root, _, rest = collection.partition("/namespaces/")
    plural = rest.rpartition("/")[2]
    kinds = {name: kind for name, kind in RESOURCES[root]}
    return root.removeprefix("/apis/").removeprefix("/api/"), kinds[plural]


def spec_note(batch_size: int) -> dict[str, str]:
    """Return the annotation that says what a job trains."""
    return {SPEC: orjson.dumps(spec_document(batch_size=batch_size)).decode()}


def owner(kind: str, api_version: str, path: str, name: str) -> list[dict[str, Any]]:
    """Return the reference of what the object at *path* made."""
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{path}"}
    return [{**reference, "controller": True}]
