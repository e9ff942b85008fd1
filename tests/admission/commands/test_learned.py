"""`serve` follows what the controller has learnt, in one ConfigMap by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from admission.commands.learned import followed_learnt
from admission.learning import residuals_text
from admission.learning.deaths import CONFIG_MAP, KEY
from admission.outages import Outages
from tests.admission.commands.test_calibration import config_map
from tests.admission.watched import FakeApi, client_of
from tests.e2e.processes import poll_until

PATH = "/api/v1/namespaces/here/configmaps"


def learned(version: str, **data: str) -> dict[str, Any]:
    """Return the ConfigMap with what some jobs taught."""
    return {**config_map(**data), "metadata": {"name": CONFIG_MAP, "resourceVersion": version}}


def test_what_is_learnt_is_known_until_its_configmap_is_gone(tmp_path: Path) -> None:
    """What is not ours in it is nothing."""
    api = FakeApi()
    client = client_of(api, tmp_path)
    try:
        with followed_learnt(client, namespace="here", outages=Outages()) as learnt:
            api.listing(learned("5"), version="5")
            poll_until(lambda: bool(learnt.corrections), what="what was learnt")
            api.events(("MODIFIED", learned("6", **{residuals_text.KEY: "{"})))
            poll_until(lambda: not learnt.corrections, what="nothing of what is broken")
            api.events(("MODIFIED", learned("7")))
            poll_until(lambda: bool(learnt.corrections), what="what was learnt, again")
            api.events(("DELETED", learned("8")))
            poll_until(lambda: not learnt.corrections, what="nothing of what is gone")
        path, query, _ = api.asked.get()
    finally:
        api.close()
        client.close()

    assert path == PATH
    assert query["fieldSelector"] == [f"metadata.name={CONFIG_MAP}"]


def test_without_a_cluster_nothing_is_known() -> None:
    """A nodes file alone is no cluster."""
    with followed_learnt(None, namespace="here", outages=Outages()) as learnt:
        assert not learnt.corrections


def test_deaths_and_measurements_have_keys_of_their_own() -> None:
    """One writer never undoes what the other wrote."""
    assert KEY != residuals_text.KEY
