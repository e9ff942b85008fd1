"""The plain routes answer anybody, and a few at once."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from admission.errors import SettingsError
from admission.probes import MAX_CONNECTIONS, Probes, answering
from tests.faults.limits import no_more_threads


class State:
    """What the routes are told."""

    unhealthy: str | None = None
    not_ready: str | None = None


@pytest.fixture
def state() -> State:
    """All is well."""
    return State()


@pytest.fixture
def port(state: State) -> Iterator[int]:
    """A port where the routes answer."""
    probes = Probes(
        unhealthy=lambda: state.unhealthy,
        not_ready=lambda: state.not_ready,
        metrics=lambda: b"a 1\n",
    )
    with answering("127.0.0.1", 0, probes) as chosen:
        yield chosen


def get(port: int, path: str) -> tuple[int, str]:
    """Return status and text of a route."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_routes_say_what_they_are_told(port: int, state: State) -> None:
    """503 has the reason."""
    assert get(port, "/healthz") == (200, "ok\n")
    assert get(port, "/metrics?a=b") == (200, "a 1\n")
    assert get(port, "/elsewhere") == (404, "not found\n")

    state.unhealthy, state.not_ready = "the driver hangs", "not yet"

    assert get(port, "/healthz") == (503, "the driver hangs\n")
    assert get(port, "/readyz") == (503, "not yet\n")


def test_connections_that_say_nothing_cost_no_more_than_a_few_threads(port: int) -> None:
    """What comes beyond them is closed at once, and the routes are back once one has gone."""
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(MAX_CONNECTIONS)]
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as beyond:
            assert beyond.recv(1) == b""
    finally:
        for connection in idle:
            connection.close()

    for _ in range(1000):
        try:
            assert get(port, "/healthz")[0] == 200
            return
        except (OSError, urllib.error.URLError):
            continue
    raise AssertionError("no answer")


def test_probe_without_a_thread_keeps_no_place(port: int) -> None:
    """The system has none left for us: the places are there again once it has."""
    with no_more_threads():
        for _ in range(MAX_CONNECTIONS + 1):
            with pytest.raises(OSError, match=r"."):
                get(port, "/healthz")

    assert get(port, "/healthz") == (200, "ok\n")


def test_port_that_is_taken_is_bad_settings(port: int) -> None:
    """By name."""
    probes = Probes(unhealthy=lambda: None, not_ready=lambda: None, metrics=lambda: b"")

    with pytest.raises(SettingsError, match=r"agent\.port"), answering("127.0.0.1", port, probes):
        pass
