"""Watches follow a real HTTP server that speaks list and watch; the inventory follows them."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import structlog
import yaml
from kubernetes.client.api_client import ApiClient

from admission.cluster import NAMESPACES, NODES, Resource, Snapshot, Watch, connect, cut_node
from admission.codes import Mode, Steer
from admission.errors import SettingsError
from admission.inventory import Inventory, read_nodes
from tests.builders import gpu_labels, node

WAIT_SECONDS = 10.0


class FakeApi:
    """Answers each request with the next scripted answer; remembers what was asked."""

    def __init__(self) -> None:
        self.asked: queue.Queue[tuple[str, Mapping[str, list[str]], str]] = queue.Queue()
        self.answers: queue.Queue[tuple[int, list[Any]]] = queue.Queue()
        self.closing = threading.Event()
        api = self

        class Requests(BaseHTTPRequestHandler):
            """One connection."""

            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                """Answer with the lines scripted, one chunk each; hold when the script ends."""
                split = urlsplit(self.path)
                api.asked.put((split.path, parse_qs(split.query), self.headers["Accept"]))
                status, lines = api.next_answer()
                self.send_response(status)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in lines:
                    body = json.dumps(line).encode() + b"\n"
                    self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def next_answer(self) -> tuple[int, list[Any]]:
        """Return what is scripted next; an ended watch while the test ends."""
        while not self.closing.is_set():
            try:
                return self.answers.get(timeout=0.05)
            except queue.Empty:
                continue
        return 200, []

    def listing(self, *items: Any, version: str, more: str = "") -> None:
        """Script the answer to a list."""
        metadata = {"resourceVersion": version, "continue": more}
        self.answers.put((200, [{"metadata": metadata, "items": list(items)}]))

    def events(self, *events: tuple[str, Any]) -> None:
        """Script the answer to a watch."""
        lines = [{"type": kind, "object": item} for kind, item in events]
        self.answers.put((200, lines))

    def error(self, status: int) -> None:
        """Script an HTTP error."""
        self.answers.put((status, [{"kind": "Status", "code": status}]))

    def next_query(self) -> dict[str, str]:
        """Return the query of the next request."""
        _, query, _ = self.asked.get(timeout=WAIT_SECONDS)
        return {key: values[0] for key, values in query.items()}

    def close(self) -> None:
        """Stop, once everything held has been let go."""
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A fake API server on loopback."""
    fake = FakeApi()
    yield fake
    fake.close()


@pytest.fixture
def client(api: FakeApi, tmp_path: Path) -> Iterator[ApiClient]:
    """A client for the fake API server, from a kubeconfig."""
    host, port = api.server.server_address[:2]
    assert isinstance(host, str)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://{host}:{port}"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    made = connect(path)
    yield made
    made.close()


class Followed:
    """A running watch and the snapshots it published."""

    def __init__(self, client: ApiClient, resource: Resource) -> None:
        self._snapshots: queue.Queue[Snapshot] = queue.Queue()
        self.watch = Watch(client, resource, self._snapshots.put, first_pause_seconds=0.01)
        self.watch.start()

    def next(self) -> Snapshot:
        """Return the next snapshot."""
        return self._snapshots.get(timeout=WAIT_SECONDS)

    def names(self) -> list[str]:
        """Return the names in the next snapshot."""
        return sorted(self.next())

    @property
    def num_unseen(self) -> int:
        """Return how many snapshots nobody took."""
        return self._snapshots.qsize()


@pytest.fixture
def nodes(api: FakeApi, client: ApiClient) -> Iterator[Followed]:
    """A watch of the fake's nodes."""
    followed = Followed(client, NODES)
    yield followed
    followed.watch.stop()
    api.closing.set()
    followed.watch.join(WAIT_SECONDS)


def versioned(name: str, version: str, **changes: Any) -> dict[str, Any]:
    """Return a node at a resource version."""
    made = node(name, **changes)
    made["metadata"]["resourceVersion"] = version
    return made


def test_list_is_read_page_by_page_and_published_once(api: FakeApi, nodes: Followed) -> None:
    """Two pages make one snapshot; the watch goes on from the version of the last."""
    api.listing(node("a"), version="7", more="token")
    api.listing(node("b"), version="7")

    assert nodes.names() == ["a", "b"]
    assert "continue" not in api.next_query()
    assert api.next_query()["continue"] == "token"
    query = api.next_query()
    assert (query["watch"], query["resourceVersion"]) == ("true", "7")
    assert query["allowWatchBookmarks"] == "true"


def test_each_change_makes_a_snapshot(api: FakeApi, nodes: Followed) -> None:
    """Added, modified and deleted nodes are followed in order."""
    api.listing(node("a"), version="1")
    api.events(
        ("ADDED", versioned("b", "2")),
        ("MODIFIED", versioned("b", "3", resources={"nvidia.com/gpu": "4"})),
        ("DELETED", versioned("a", "4")),
    )

    found = [nodes.next() for _ in range(4)]

    assert [sorted(snapshot) for snapshot in found] == [["a"], ["a", "b"], ["a", "b"], ["b"]]
    assert found[1]["b"]["status"]["capacity"] == {"nvidia.com/gpu": "8"}
    assert found[2]["b"]["status"]["capacity"] == {"nvidia.com/gpu": "4"}


def test_report_of_health_makes_no_snapshot(api: FakeApi, nodes: Followed) -> None:
    """Nodes change all the time in what is not read: nothing is computed again for it."""
    healthy = versioned("a", "2")
    healthy["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    api.listing(node("a"), version="1")
    api.events(("MODIFIED", healthy), ("ADDED", versioned("b", "3")))

    assert nodes.names() == ["a"]
    assert nodes.names() == ["a", "b"]


def test_ended_watch_goes_on_from_the_last_version(api: FakeApi, nodes: Followed) -> None:
    """The API server ends each watch after minutes; bookmarks keep the version fresh."""
    api.listing(node("a"), version="1")
    api.events(("ADDED", versioned("b", "2")), ("BOOKMARK", {"metadata": {"resourceVersion": "9"}}))
    api.events(("DELETED", versioned("a", "10")))

    assert [nodes.names() for _ in range(3)] == [["a"], ["a", "b"], ["b"]]
    queries = [api.next_query() for _ in range(3)]
    assert [query.get("resourceVersion") for query in queries] == [None, "1", "9"]


@pytest.mark.parametrize("as_event", [True, False])
def test_version_that_is_gone_lists_again(api: FakeApi, nodes: Followed, as_event: bool) -> None:
    """410 comes as an event or as an HTTP status: either way the list has the truth."""
    api.listing(node("a"), version="1")
    if as_event:
        api.events(("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"}))
    else:
        api.error(410)
    api.listing(node("b"), version="20")

    assert [nodes.names() for _ in range(2)] == [["a"], ["b"]]
    queries = [api.next_query() for _ in range(4)]
    assert [query.get("resourceVersion") for query in queries] == [None, "1", None, "20"]


def test_list_that_expires_between_pages_starts_again(api: FakeApi, nodes: Followed) -> None:
    """A token that is gone does not lose the nodes of the pages before it."""
    api.listing(node("a"), version="1", more="token")
    api.error(410)
    api.listing(node("a"), node("b"), version="2")

    assert nodes.names() == ["a", "b"]


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_error_is_tried_again_after_a_pause(api: FakeApi, nodes: Followed, status: int) -> None:
    """An API server that restarts, or a role that is bound later, is not given up on."""
    api.error(status)
    api.error(status)
    api.listing(node("a"), version="1")

    assert nodes.names() == ["a"]


def test_broken_watch_goes_on_without_listing(api: FakeApi, nodes: Followed) -> None:
    """Half a line, or an error event that is not 410, costs a pause and no list."""
    api.listing(node("a"), version="1")
    api.events(("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError"}))
    api.events(("ADDED", versioned("b", "2")))

    assert [nodes.names() for _ in range(2)] == [["a"], ["a", "b"]]


def test_namespaces_are_asked_for_by_their_metadata(api: FakeApi, client: ApiClient) -> None:
    """Only names and labels cross the wire, and only those are kept."""
    labels = {"vramgate.dev/mode": "enforce"}
    metadata = {"name": "team", "labels": labels, "annotations": {"long": "text"}}
    api.listing({"metadata": metadata}, version="1")
    followed = Followed(client, NAMESPACES)

    snapshot = followed.next()

    followed.watch.stop()
    api.closing.set()
    followed.watch.join(WAIT_SECONDS)
    path, _, accept = api.asked.get(timeout=WAIT_SECONDS)
    assert path == "/api/v1/namespaces"
    assert accept == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    assert snapshot == {"team": {"metadata": {"name": "team", "labels": labels}}}


def test_stopped_watch_publishes_nothing_more(api: FakeApi, client: ApiClient) -> None:
    """What arrives after the stop stays where it is."""
    followed = Followed(client, NODES)
    followed.watch.stop()
    api.listing(node("a"), version="1")
    api.closing.set()
    followed.watch.join(WAIT_SECONDS)

    assert followed.num_unseen == 0


def test_node_is_cut_down_to_what_is_read() -> None:
    """Images, conditions and addresses are most of a node and say nothing of its cards."""
    whole = node("a", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    whole["status"]["images"] = [{"names": ["x"]}] * 50
    whole["metadata"]["annotations"] = {"a": "b"}

    assert cut_node(whole) == {
        "metadata": {"name": "a", "labels": whole["metadata"]["labels"]},
        "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"nvidia.com/gpu": "8"},
            "allocatable": {"nvidia.com/gpu": "8"},
        },
    }


def test_proxy_of_the_environment_is_not_taken(
    client: ApiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server is reached as the kubeconfig says, and only so."""
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")

    made = connect(tmp_path / "kubeconfig")

    assert made.configuration.host == client.configuration.host
    assert made.configuration.proxy is None
    made.close()


def test_missing_kubeconfig_is_a_problem_of_the_settings(tmp_path: Path) -> None:
    """The message names the file and what else would do."""
    with pytest.raises(SettingsError, match="none") as caught:
        connect(tmp_path / "none")

    assert "nodes.file" in str(caught.value)


def test_outside_a_cluster_a_kubeconfig_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without file and cluster there is nothing to watch, and that is said."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(SettingsError, match="--kubeconfig"):
        connect(None)


HOUR = 3600.0


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Known:
    """An inventory that keeps removed nodes for a day."""

    def __init__(self, *, namespaces_expected: bool = False) -> None:
        self.clock = Clock()
        self.told: list[int] = []
        self.inventory = Inventory(
            keep_seconds=24 * HOUR,
            namespaces_expected=namespaces_expected,
            changed=lambda classes: self.told.append(len(classes)),
            clock=self.clock,
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


def test_one_object_is_followed_by_its_name(api: FakeApi, client: ApiClient) -> None:
    """A role that is bound to the name of a Secret is enough to watch it."""
    api.listing(versioned("b", "3"), version="3")
    api.events(("MODIFIED", versioned("b", "4")))
    followed = Followed(client, Resource(path=NODES.path, cut=cut_node, name="b"))

    assert followed.names() == ["b"]

    followed.watch.stop()
    api.closing.set()
    followed.watch.join(WAIT_SECONDS)
    selectors = [api.next_query()["fieldSelector"] for _ in range(2)]
    assert selectors == ["metadata.name=b", "metadata.name=b"]


def test_reason_that_stays_is_logged_once(api: FakeApi, client: ApiClient) -> None:
    """A role that is missing for a day is one line, and another reason is another."""
    for status in (403, 403, 403, 500):
        api.error(status)
    api.listing(node("a"), version="1")
    with structlog.testing.capture_logs() as lines:
        followed = Followed(client, NODES)
        assert followed.names() == ["a"]

        followed.watch.stop()
        api.closing.set()
        followed.watch.join(WAIT_SECONDS)

    reasons = [line["reason"] for line in lines if line["event"] == "watch interrupted"]
    assert [reason.split()[0] for reason in reasons] == ["403", "500"]
