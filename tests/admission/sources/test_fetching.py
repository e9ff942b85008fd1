"""Several documents at once, within one limit, remembered for a while."""

from __future__ import annotations

import asyncio
import threading

from admission.sources.fetching import KEPT, MAX_FETCHES, MAX_REMEMBERED_BYTES, MAX_WAITING, Fetcher
from admission.sources.references import Origin, Reference
from admission.values import Document


class Shelf:
    """Has one ConfigMap; counts who asks."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def fetch(self, reference: Reference, *, namespace: str) -> Document:
        """Return the ConfigMap `a`."""
        self.asked.append(f"{namespace}/{reference.name}")
        self.may_answer.wait(10)
        if reference.name == "boom":
            raise RuntimeError
        return Document(files={"k": "v"}) if reference.name == "a" else Document(problem="no")


class Clock:
    """Moves when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def fetcher(shelf: Shelf, clock: Clock | None = None, *, seconds: float = 5.0) -> Fetcher:
    """Return one that knows ConfigMaps only."""
    return Fetcher({Origin.CONFIG_MAP: shelf}, seconds=seconds, clock=clock or Clock())


async def test_each_reference_has_an_answer() -> None:
    """Found, not found, refused, our fault, nobody to ask: always a document."""
    wanted = ["configmap/a", "configmap/b", "configmap/boom", "nonsense", "hf://org/model"]
    found = await fetcher(Shelf()).fetch(wanted, namespace="n")
    assert found["configmap/a"] == Document(files={"k": "v"})
    assert [bool(found[name].problem) for name in wanted] == [False, True, True, True, True]


async def test_a_gang_asks_once_and_others_namespaces_are_others() -> None:
    """Equal questions at the same time are one; a ConfigMap of another namespace is another."""
    shelf = Shelf()
    asking = fetcher(shelf)
    await asyncio.gather(*(asking.fetch(["configmap/a"], namespace="n") for _ in range(20)))
    await asking.fetch(["configmap/a"], namespace="m")
    assert shelf.asked == ["n/a", "m/a"]


async def test_what_is_remembered_is_asked_again_later() -> None:
    """A ConfigMap that changed, or that was not there yet, is seen a moment later."""
    shelf, clock = Shelf(), Clock()
    asking = fetcher(shelf, clock)
    kept = KEPT[Origin.CONFIG_MAP]
    for moment in (0.0, kept.failure_seconds + 0.1, kept.seconds + 0.1):
        clock.now = moment
        await asking.fetch(["configmap/a", "configmap/b"], namespace="n")
    assert shelf.asked.count("n/a") == 2
    assert shelf.asked.count("n/b") == 3


async def test_late_answer_is_there_for_the_next() -> None:
    """Whoever waits goes on without it; it fills the memory."""
    shelf = Shelf()
    shelf.may_answer.clear()
    asking = fetcher(shelf)
    late = await asking.fetch(["configmap/a"], namespace="n", seconds=0.01)
    shelf.may_answer.set()
    found = await asking.fetch(["configmap/a"], namespace="n", seconds=5.0)
    assert "took longer" in late["configmap/a"].problem
    assert found["configmap/a"].files == {"k": "v"}
    assert shelf.asked == ["n/a"]


async def test_hub_that_hangs_holds_up_no_config_map() -> None:
    """Each kind of source has threads of its own."""
    hub, shelf = Shelf(), Shelf()
    hub.may_answer.clear()
    asking = Fetcher({Origin.HUB: hub, Origin.CONFIG_MAP: shelf}, seconds=5.0)
    models = [f"hf://org/m{number}" for number in range(2 * MAX_FETCHES)]
    try:
        await asking.fetch(models, namespace="n", seconds=0.01)
        found = await asking.fetch(["configmap/a"], namespace="n")
    finally:
        hub.may_answer.set()
    assert found["configmap/a"].files == {"k": "v"}


async def test_one_namespace_cannot_fill_the_line() -> None:
    """What is beyond its part is refused by name and not remembered; others are served."""
    shelf = Shelf()
    shelf.may_answer.clear()
    asking = fetcher(shelf)
    many = [f"configmap/m{number}" for number in range(MAX_WAITING)]
    await asking.fetch(many, namespace="n", seconds=0.01)
    refused = await asking.fetch(["configmap/a"], namespace="n", seconds=0.01)
    shelf.may_answer.set()
    others = await asking.fetch(["configmap/a"], namespace="m")
    await asking.fetch(many, namespace="n")
    again = await asking.fetch(["configmap/a"], namespace="n")

    assert "too many" in refused["configmap/a"].problem
    assert others["configmap/a"].files == {"k": "v"}
    assert again["configmap/a"].files == {"k": "v"}


class Warehouse:
    """Has large binary data under every name; counts who asks."""

    def __init__(self) -> None:
        self.asked = 0

    def fetch(self, _reference: Reference, *, namespace: str) -> Document:
        """Return a third of what is remembered."""
        assert namespace == "n"
        self.asked += 1
        return Document(files={}, blobs={"k": b"x" * (MAX_REMEMBERED_BYTES // 3)})


async def test_binary_data_counts_as_remembered() -> None:
    """Memory has one bound for texts and bytes: the oldest of three is forgotten."""
    house = Warehouse()
    asking = Fetcher({Origin.CONFIG_MAP: house}, seconds=5.0, clock=Clock())
    for name in ("a", "b", "c", "a"):
        await asking.fetch([f"configmap/{name}"], namespace="n")
    assert house.asked == 4
