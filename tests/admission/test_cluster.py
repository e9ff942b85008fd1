"""Which cluster is asked, and what is kept of its objects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from admission.cluster import Client, connect, cut_node
from admission.errors import SettingsError
from tests.admission.watched import FakeApi, client_of
from tests.builders import node


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client for a fake API server."""
    fake = FakeApi()
    made = client_of(fake, tmp_path)
    yield made
    made.close()
    fake.close()


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
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
