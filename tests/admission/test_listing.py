"""What commands read of a cluster: from a real HTTP server, by a kubeconfig."""

from __future__ import annotations

from pathlib import Path

import pytest

from admission.errors import ManifestError, SettingsError
from admission.listing import connection
from tests.admission.commands.api_server import serving, write_kubeconfig
from tests.builders import node


def test_nodes_are_listed_page_by_page(tmp_path: Path) -> None:
    """All of them, cut down to what decides."""
    with serving({"/api/v1/nodes": [node("a"), node("b")]}) as server:
        found = connection(write_kubeconfig(tmp_path, server.url)).nodes()

    assert [each["metadata"]["name"] for each in found] == ["a", "b"]
    assert server.asked == ["/api/v1/nodes", "/api/v1/nodes"]
    assert "apiVersion" not in found[0]


def test_objects_without_a_namespace_belong_to_that_of_the_context(tmp_path: Path) -> None:
    """As kubectl would create them; a namespace that is named counts before it."""
    kubeconfig = write_kubeconfig(tmp_path, "http://127.0.0.1:1")

    assert connection(kubeconfig).namespace == "team"
    assert connection(kubeconfig, namespace="other").namespace == "other"


def test_refusal_is_told_with_the_next_step(tmp_path: Path) -> None:
    """Who may not list nodes hears so."""
    with serving({}, status=403) as server:
        connected = connection(write_kubeconfig(tmp_path, server.url))
        with pytest.raises(ManifestError, match="/api/v1/nodes: the API server says 403") as raised:
            connected.nodes()

    assert raised.value.hint is not None
    assert "can-i list nodes" in raised.value.hint


def test_cluster_that_is_away_is_told(tmp_path: Path) -> None:
    """The other context leads nowhere."""
    connected = connection(write_kubeconfig(tmp_path, "http://127.0.0.1:1"), context="away")

    with pytest.raises(ManifestError, match="does not answer"):
        connected.nodes()


def test_context_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    """A slip of the finger asks no other cluster."""
    with pytest.raises(SettingsError, match="nowhere"):
        connection(write_kubeconfig(tmp_path, "http://127.0.0.1:1"), context="nowhere")
