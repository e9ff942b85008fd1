"""Watches follow a real HTTP server that speaks list and watch, also one that stops doing so."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from admission.cluster import NAMESPACES, NODES, Client, Resource, cut_node
from admission.watch import MAX_LINE_BYTES, Snapshot, Times, Watch
from tests.admission.watched import (
    QUICK,
    WAIT_SECONDS,
    FakeApi,
    Followed,
    client_at,
    client_of,
    versioned,
)
from tests.builders import node


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A fake API server on loopback."""
    fake = FakeApi()
    yield fake
    fake.close()


@pytest.fixture
def client(api: FakeApi, tmp_path: Path) -> Iterator[Client]:
    """A client for the fake API server."""
    made = client_of(api, tmp_path)
    yield made
    made.close()


@pytest.fixture
def nodes(api: FakeApi, client: Client) -> Iterator[Followed]:
    """A watch of the fake's nodes."""
    followed = Followed(client, NODES)
    yield followed
    followed.watch.stop()
    api.close_all()
    followed.watch.join(WAIT_SECONDS)


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


LONG = b"x" * (1 << 20)


@pytest.mark.parametrize(
    "pieces",
    [
        (b'{"type": "ADDED", "object": {"metadata": {"na',),
        (b"\x00\xff not JSON\n",),
        (b"[]\n",),
        (b'"ADDED"\n',),
        (b'{"type": "ADDED", "object": "text"}\n',),
        (b'{"type": "ADDED", "object": {"metadata": 7}}\n',),
        (LONG,) * (MAX_LINE_BYTES // len(LONG) + 1),
    ],
    ids=["half", "noise", "list", "text", "no object", "no metadata", "endless"],
)
def test_garbage_in_a_watch_is_survived(
    api: FakeApi, nodes: Followed, pieces: tuple[bytes, ...]
) -> None:
    """Half a line, noise, objects of another form, a line without an end: it is asked again."""
    api.listing(node("a"), version="1")
    api.raw(*pieces)
    api.events(("ADDED", versioned("c", "2")))

    assert [nodes.names() for _ in range(2)] == [["a"], ["a", "c"]]
    assert [api.next_query().get("resourceVersion") for _ in range(3)] == [None, "1", "1"]


@pytest.mark.parametrize("page", [b"[]", b"7", b'{"items": 7}', b'{"items": ["text"]}', b"{", b" "])
def test_garbage_for_a_list_is_survived(api: FakeApi, nodes: Followed, page: bytes) -> None:
    """A proxy in between says something of its own; the list is asked for again."""
    api.raw(page)
    api.listing(node("a"), version="1")

    assert nodes.names() == ["a"]


def test_fault_in_who_takes_the_news_ends_no_watch(api: FakeApi, client: Client) -> None:
    """A thread that ended would be noticed by nobody: it is told once, and the watch goes on."""
    taken: queue.Queue[list[str]] = queue.Queue()

    def take(snapshot: Snapshot) -> None:
        if "c" not in snapshot:
            raise ZeroDivisionError("a bug")
        taken.put(sorted(snapshot))

    for name in ("a", "b", "c"):
        api.listing(node(name), version="1")
    with structlog.testing.capture_logs() as lines:
        watch = Watch(client, NODES, take, times=QUICK)
        watch.start()
        assert taken.get(timeout=WAIT_SECONDS) == ["c"]
        watch.stop()
        api.close_all()
        watch.join(WAIT_SECONDS)

    failed = [line for line in lines if line["event"] == "watch failed"]
    assert [line["log_level"] for line in failed] == ["error"]
    assert isinstance(failed[0]["exc_info"], ZeroDivisionError)


def test_name_of_the_api_server_that_no_resolver_knows_is_an_outage(tmp_path: Path) -> None:
    """It is told as one, with the reason, and asked for again."""
    told: queue.Queue[frozenset[str]] = queue.Queue()
    client = client_at("http://api.invalid", tmp_path)
    with structlog.testing.capture_logs() as lines:
        followed = Followed(client, NODES, tell=told.put)
        assert told.get(timeout=WAIT_SECONDS) == {"nodes"}
        followed.watch.stop()
        followed.watch.join(WAIT_SECONDS)

    (line,) = (each for each in lines if each["event"] == "api server away")
    assert "NameResolutionError" in line["reason"]


def test_namespaces_are_asked_for_by_their_metadata(api: FakeApi, client: Client) -> None:
    """Only names and labels cross the wire, and only those are kept."""
    labels = {"vramgate.dev/mode": "enforce"}
    metadata = {"name": "team", "labels": labels, "annotations": {"long": "text"}}
    api.listing({"metadata": metadata}, version="1")
    followed = Followed(client, NAMESPACES)

    snapshot = followed.next()

    followed.watch.stop()
    api.close_all()
    followed.watch.join(WAIT_SECONDS)
    path, _, accept = api.asked.get(timeout=WAIT_SECONDS)
    assert path == "/api/v1/namespaces"
    assert accept == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    assert snapshot == {"team": {"metadata": {"name": "team", "labels": labels}}}


def test_stopped_watch_publishes_nothing_more(api: FakeApi, client: Client) -> None:
    """What arrives after the stop stays where it is."""
    followed = Followed(client, NODES)
    followed.watch.stop()
    api.listing(node("a"), version="1")
    api.close_all()
    followed.watch.join(WAIT_SECONDS)

    assert followed.num_unseen == 0


def test_one_object_is_followed_by_its_name(api: FakeApi, client: Client) -> None:
    """A role that is bound to the name of a Secret is enough to watch it."""
    api.listing(versioned("b", "3"), version="3")
    api.events(("MODIFIED", versioned("b", "4")))
    followed = Followed(client, Resource(path=NODES.path, cut=cut_node, name="b"))

    assert followed.names() == ["b"]

    followed.watch.stop()
    api.close_all()
    followed.watch.join(WAIT_SECONDS)
    selectors = [api.next_query()["fieldSelector"] for _ in range(2)]
    assert selectors == ["metadata.name=b", "metadata.name=b"]


def test_reason_that_stays_is_logged_once(api: FakeApi, client: Client) -> None:
    """A role that is missing for a day is one line, and another reason is another."""
    for status in (403, 403, 403, 500):
        api.error(status)
    api.listing(node("a"), version="1")
    with structlog.testing.capture_logs() as lines:
        followed = Followed(client, NODES)
        assert followed.names() == ["a"]

        followed.watch.stop()
        api.close_all()
        followed.watch.join(WAIT_SECONDS)

    told = [(line["event"], line.get("reason", "")[:3]) for line in lines]
    assert told == [
        ("watch interrupted", "403"),
        ("api server away", "500"),
        ("api server answers again", ""),
    ]


@pytest.mark.parametrize("hangs", ["the list", "the watch", "a page of the list"])
def test_api_server_that_hangs_is_noticed_and_followed_again(
    api: FakeApi, client: Client, hangs: str
) -> None:
    """It takes the request and never answers: that is an outage, and nothing known is lost."""
    told: queue.Queue[frozenset[str]] = queue.Queue()
    if hangs == "the list":
        api.hang()
    elif hangs == "a page of the list":
        api.listing(node("a"), version="1", more="token")
        api.hang()
    api.listing(node("a"), version="1")
    if hangs == "the watch":
        api.hang()
    api.events(("ADDED", versioned("b", "2")))
    with structlog.testing.capture_logs() as lines:
        times = Times(first_pause=0.01, answer=0.2)
        followed = Followed(client, NODES, times=times, tell=told.put)
        snapshots = [followed.names() for _ in range(2)]

        followed.watch.stop()
        api.close_all()
        followed.watch.join(WAIT_SECONDS)

    assert snapshots == [["a"], ["a", "b"]]
    assert [told.get(timeout=WAIT_SECONDS) for _ in range(2)] == [{"nodes"}, set()]
    events = [line["event"] for line in lines if "api server" in line["event"]]
    assert events == ["api server away", "api server answers again"]


def test_watch_that_falls_silent_is_asked_again_from_where_it_was(
    api: FakeApi, client: Client
) -> None:
    """A connection that died without a word; silence alone is no outage."""
    told: queue.Queue[frozenset[str]] = queue.Queue()
    api.listing(node("a"), version="1")
    api.hang({"type": "ADDED", "object": versioned("b", "2")})
    api.events(("ADDED", versioned("c", "3")))
    followed = Followed(client, NODES, times=Times(first_pause=0.01, silence=0.2), tell=told.put)

    snapshots = [followed.names() for _ in range(3)]

    followed.watch.stop()
    api.close_all()
    followed.watch.join(WAIT_SECONDS)
    assert snapshots == [["a"], ["a", "b"], ["a", "b", "c"]]
    assert [api.next_query().get("resourceVersion") for _ in range(3)] == [None, "1", "2"]
    assert told.empty()


def test_quiet_watch_may_be_silent_for_longer_than_an_answer_takes(
    api: FakeApi, client: Client
) -> None:
    """Nothing changes for a minute in most clusters: that is not asked about again."""
    api.listing(node("a"), version="1")
    api.hang({"type": "ADDED", "object": versioned("b", "2")})
    followed = Followed(client, NODES, times=Times(first_pause=0.01, answer=0.1, silence=60))

    assert [followed.names() for _ in range(2)] == [["a"], ["a", "b"]]
    for _ in range(2):
        api.next_query()
    with pytest.raises(queue.Empty):
        api.asked.get(timeout=0.5)

    followed.watch.stop()
    api.close_all()
    followed.watch.join(WAIT_SECONDS)
