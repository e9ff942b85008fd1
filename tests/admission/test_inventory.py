"""What is known of the cluster: nodes that come and go, and the labels of namespaces."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml

from admission.codes import Mode, Steer
from admission.errors import SettingsError
from admission.inventory import Inventory, read_nodes
from tests.builders import gpu_labels, node
from tests.estimator.workers.cases import until
from tests.faults.limits import no_more_threads

WAIT_SECONDS = 10.0

HOUR = 3600.0


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Known:
    """An inventory that keeps removed nodes for a day."""

    def __init__(self, *, namespaces_expected: bool = False, fault_seconds: float = 1.0) -> None:
        self.clock = Clock()
        self.told: list[int] = []
        self.inventory = Inventory(
            keep_seconds=24 * HOUR,
            namespaces_expected=namespaces_expected,
            changed=lambda classes: self.told.append(len(classes)),
            clock=self.clock,
            fault_seconds=fault_seconds,
        )

    async def at(self, hours: float, *nodes: dict[str, Any]) -> dict[str, int]:
        """Return the classes and their counts once *nodes* are what the cluster has."""
        self.clock.now = hours * HOUR
        self.inventory.set_nodes({made["metadata"]["name"]: made for made in nodes})
        await self.inventory.refresh()
        return {found.name: found.count for found in self.inventory.classes}


A100_LABELS = gpu_labels(product="NVIDIA-A100-SXM4-40GB", memory="40960", compute=(8, 0))


async def test_removed_node_counts_for_the_days_it_is_kept() -> None:
    """A pool that scaled to zero still holds the job that will scale it up."""
    known = Known()
    await known.at(0, node("t4"), node("a100", labels=A100_LABELS))

    found = [await known.at(hours, node("t4")) for hours in (1, 24, 26)]

    both = {"NVIDIA-A100-SXM4-40GB": 1, "Tesla-T4": 1}
    assert found == [both, both, {"Tesla-T4": 1}]


async def test_what_says_nothing_new_leaves_the_classes_as_they_are() -> None:
    """The very same: what others remember of them stays good."""
    known = Known()
    await known.at(0, node("t4"), node("t4-2"))
    before = known.inventory.classes

    await known.at(1, node("t4"), node("t4-2"))
    again = known.inventory.classes
    await known.at(2, node("t4"), node("t4-2"), node("t4-3"))

    assert again is before
    assert known.inventory.classes != before


async def test_removed_nodes_of_one_pool_count_as_one() -> None:
    """Autoscalers name each node anew: a week of them is no thousand cards."""
    known = Known()
    for number in range(20):
        await known.at(number, node(f"spot-{number}"))

    assert await known.at(20) == {"Tesla-T4": 1}
    assert await known.at(21, node("spot-20"), node("spot-21")) == {"Tesla-T4": 2}


async def test_removed_nodes_without_cards_are_forgotten() -> None:
    """Only cards are of interest."""
    known = Known()
    await known.at(0, node("cpu", labels={}, resources={"cpu": "8"}))

    assert await known.at(1) == {}


async def test_inventory_is_listed_once_everything_expected_was_read() -> None:
    """Not before the classes of the first list are there."""
    known = Known(namespaces_expected=True)
    found = [known.inventory.is_listed]

    known.inventory.set_namespaces({})
    known.inventory.set_nodes({})
    found.append(known.inventory.is_listed)
    await known.inventory.refresh()
    found.append(known.inventory.is_listed)

    assert found == [False, False, True]


async def test_running_inventory_follows_what_arrives() -> None:
    """A new snapshot becomes classes without anybody asking, and the metrics are told."""
    known = Known()
    running = asyncio.create_task(known.inventory.run())

    known.inventory.set_nodes({"t4": node("t4")})
    async with asyncio.timeout(WAIT_SECONDS):
        while not known.inventory.classes:  # noqa: ASYNC110 (computed in a thread)
            await asyncio.sleep(0.005)
    running.cancel()

    assert known.told == [1]


async def test_fault_leaves_what_is_known_and_is_tried_again() -> None:
    """Without a thread to compute in, say: the cards of before count until there is one."""
    known = Known(fault_seconds=0.01)
    await known.at(0, node("t4"))
    before = known.inventory.classes
    following = asyncio.create_task(known.inventory.run())
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    with structlog.testing.capture_logs() as lines, no_more_threads():
        known.inventory.set_nodes({"a100": node("a100", labels=A100_LABELS)})
        await until(lambda: bool(lines))
        assert known.inventory.classes == before

    await until(lambda: known.inventory.is_there("a100"))
    following.cancel()
    assert [line["event"] for line in lines][:1] == ["nodes not taken"]


def test_modes_come_from_the_labels_of_namespaces() -> None:
    """A value that is no mode asks for none, and a label that is taken away neither."""
    inventory = Inventory(keep_seconds=0, namespaces_expected=True)

    def label(value: object) -> dict[str, Any]:
        return {"metadata": {"labels": {"vramgate.dev/mode": value}}}

    inventory.set_namespaces({"a": label("enforce"), "b": label("Off"), "c": label(None)})
    found = [inventory.mode_of(name) for name in ("a", "b", "c", "unheard-of")]
    inventory.set_namespaces({"a": {"metadata": {}}})

    assert found == [Mode.ENFORCE, None, None, None]
    assert inventory.mode_of("a") is None


def test_steering_comes_from_the_labels_of_namespaces() -> None:
    """As the mode does."""
    inventory = Inventory(keep_seconds=0, namespaces_expected=True)

    def label(value: object) -> dict[str, Any]:
        return {"metadata": {"labels": {"vramgate.dev/steer": value}}}

    inventory.set_namespaces({"a": label("off"), "b": label("hard"), "c": {"metadata": {}}})

    assert [inventory.steer_of(name) for name in "abcd"] == [Steer.OFF, None, None, None]


NODES_FILES = {
    "what kubectl prints": {"apiVersion": "v1", "kind": "List", "items": [node("a"), node("b")]},
    "a list whose items have no kind": {
        "kind": "NodeList",
        "items": [{key: node("a")[key] for key in ("metadata", "status")}, node("b")],
    },
}


@pytest.mark.parametrize("name", NODES_FILES)
def test_nodes_are_read_from_a_file(tmp_path: Path, name: str) -> None:
    """JSON and YAML alike."""
    path = tmp_path / "nodes"
    for text in (json.dumps(NODES_FILES[name]), yaml.safe_dump(NODES_FILES[name])):
        path.write_text(text)

        assert sorted(read_nodes(path)) == ["a", "b"]


def test_documents_of_nodes_are_read_one_after_the_other(tmp_path: Path) -> None:
    """Also with an empty one among them."""
    path = tmp_path / "nodes.yaml"
    path.write_text("---\n".join([yaml.safe_dump(node("a")), "\n", yaml.safe_dump(node("b"))]))

    assert sorted(read_nodes(path)) == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    ["kind: Pod", "[1]", "kind: Node", "kind: List\nitems: [7]", "a: [", "kind: Node\nmetadata: x"],
)
def test_file_without_nodes_is_a_problem_of_the_settings(tmp_path: Path, text: str) -> None:
    """It names the file."""
    path = tmp_path / "nodes.yaml"
    path.write_text(text)

    with pytest.raises(SettingsError, match=r"nodes\.yaml"):
        read_nodes(path)


def test_missing_nodes_file_is_a_problem_of_the_settings(tmp_path: Path) -> None:
    """Before anything is served."""
    with pytest.raises(SettingsError, match=r"nodes\.file: .*no such file"):
        read_nodes(tmp_path / "nodes.yaml")
