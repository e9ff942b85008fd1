"""An API server that is away is told once, however many watches see it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from admission.outages import Followed, Outages, Watched

NODES = Followed(kind="nodes", path="/api/v1/nodes")
NAMESPACES = Followed(kind="namespaces", path="/api/v1/namespaces")
SECRET = Followed(kind="secrets", path="/api/v1/namespaces/n/secrets/s")


class Scene:
    """Outages, what they told, and a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[set[str]] = []
        self.outages = Outages(lambda kinds: self.told.append(set(kinds)), clock=lambda: self.now)

    def away(self, *followed: Followed) -> None:
        """Let nobody answer about *followed*."""
        for each in followed:
            self.outages.failed(each, "timed out", is_away=True)


@pytest.fixture
def lines() -> Iterator[list[Any]]:
    """Collect the log."""
    with structlog.testing.capture_logs() as captured:
        yield captured


def test_outage_is_one_line_at_its_start_and_one_at_its_end(lines: list[Any]) -> None:
    """Every watch notices; the last that is answered ends it."""
    scene = Scene()

    scene.away(NODES, SECRET, NODES)
    scene.now = 30
    scene.away(NAMESPACES)
    scene.now = 61.04
    for each in (SECRET, NODES, NODES, NAMESPACES):
        scene.outages.over(each)

    assert [(line["event"], line.get("seconds")) for line in lines] == [
        ("api server away", None),
        ("api server answers again", 61.0),
    ]
    assert scene.told[-2:] == [{"namespaces"}, set()]
    assert scene.told[3] == {"nodes", "secrets", "namespaces"}


def test_refusal_is_told_by_what_is_refused(lines: list[Any]) -> None:
    """A role that is missing concerns one kind; it is one line for as long as it lasts."""
    scene = Scene()

    for _ in range(3):
        scene.outages.failed(NODES, "403 Forbidden", is_away=False)
    scene.outages.failed(NAMESPACES, "403 Forbidden", is_away=False)
    scene.outages.over(NODES)

    assert [(line["event"], line["path"]) for line in lines] == [
        ("watch interrupted", NODES.path),
        ("watch interrupted", NAMESPACES.path),
        ("watch resumed", NODES.path),
    ]
    assert scene.told[-1] == {"namespaces"}


def test_what_is_refused_is_answered(lines: list[Any]) -> None:
    """An outage that ends in a refusal is over, and the other way round."""
    scene = Scene()

    scene.away(NODES)
    scene.outages.failed(NODES, "403 Forbidden", is_away=False)
    scene.away(NODES)
    scene.outages.over(NODES)

    assert [line["event"] for line in lines] == [
        "api server away",
        "api server answers again",
        "watch interrupted",
        "api server away",
        "api server answers again",
    ]


def test_what_was_never_interrupted_is_not_told_of(lines: list[Any]) -> None:
    """Watches are opened again and again."""
    scene = Scene()

    scene.outages.over(NODES)

    assert (lines, scene.told) == ([], [])


def test_kinds_are_those_that_serve_follows() -> None:
    """Each has a series of its own."""
    assert {NODES.kind, NAMESPACES.kind, SECRET.kind} < set(Watched)
