"""Objects of the cluster with something odd in them: that alone is not known, all else is.

The API server checks pods and nodes, and of objects of other kinds only what their authors ask it
to. The door stays open all the same: the thread that follows a kind must outlive each of them.
"""

from __future__ import annotations

from typing import Any

import pytest

from admission.agent import pods as agent_pods
from admission.cluster import Resource, cut_node
from admission.controller.pods import PodView, cut_pod, moment
from admission.controller.tracked import tracked_of
from admission.errors import SettingsError
from admission.exemption import moment_of
from admission.inventory import read_nodes
from admission.policy_settings import ExemptionSettings
from admission.values import Json
from admission.watch import Changes, Watch
from tests.admission.controller.dead import dead_pod
from tests.builders import node

ODD: tuple[Any, ...] = (None, 7, "text", [], [None], {}, {"a": None}, [[]], True)


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_pod_with_an_odd_status_is_still_a_pod(odd: Any) -> None:
    """To the agent and to the controller: null among its containers costs that container."""
    whole = dead_pod()
    status = whole["status"]["containerStatuses"][0]
    status["containerID"] = "containerd://" + "a" * 64
    for broken in (
        {**whole, "status": {"phase": "Failed", "containerStatuses": [odd, status]}},
        {**whole, "spec": odd},
        {**whole, "metadata": {**whole["metadata"], "ownerReferences": odd, "labels": odd}},
    ):
        found = agent_pods.pods_of({"team/train-0": agent_pods.cut_pod(broken)})
        assert [each.name for each in found.by_uid.values()] == ["train-0"]
        kept = cut_pod(broken)
        if kept is not None:
            assert PodView(kept).key == "team/train-0"
    kept = cut_pod({**whole, "status": {"phase": "Failed", "containerStatuses": [odd, status]}})
    assert kept is not None
    assert [each.exit_code for each in PodView(kept).endings] == [1]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_workload_and_a_node_with_odd_parts_are_kept(odd: Any) -> None:
    """Nothing is said of the part."""
    kept = tracked_of(
        {"metadata": {"name": "a", "labels": odd}, "status": odd},
        api_version="batch/v1",
        kind="Job",
    )
    assert (kept.ref.name, kept.ended) == ("a", False)
    whole = node("t4")
    cut = cut_node({**whole, "spec": {"taints": odd}, "status": odd})
    assert cut["metadata"]["name"] == "t4"
    assert all(isinstance(each, dict) for each in cut["spec"]["taints"])


def test_an_object_that_cannot_be_read_is_left_out_of_what_is_followed() -> None:
    """The others of its kind, and the thread that follows them, go on."""

    def cut(obj: Json) -> Json:
        return {"name": obj["metadata"]["name"], "size": obj["spec"]["size"] + 1}

    told: dict[str, Any] = {}

    def changed(changes: Changes) -> None:
        told.update(changes)

    client: Any = None
    watch = Watch(client, Resource(path="/things", cut=cut), changed=changed)
    for name, size in (("a", 1), ("b", "odd"), ("c", None), ("d", 2)):
        item = {"metadata": {"name": name}, "spec": {"size": size}}
        watch._take({"type": "ADDED", "object": item})

    assert sorted(told) == ["a", "d"]


def test_a_node_file_with_a_broken_node_is_refused_at_the_start(tmp_path: Any) -> None:
    """With its name: a webhook that starts on it would know no card."""
    file = tmp_path / "nodes.yaml"
    file.write_text(
        "kind: Node\nmetadata: {name: a, labels: {nvidia.com/gpu.product: Tesla-T4, "
        "nvidia.com/gpu.memory: '15360', nvidia.com/gpu.count: '1'}}\nspec: {taints: [7]}\n"
        "status: {capacity: {nvidia.com/gpu: '1'}, allocatable: {nvidia.com/gpu: '1'}}\n"
    )
    with pytest.raises(SettingsError, match=r"nodes\.yaml"):
        read_nodes(file)


def test_moments_beyond_the_calendar_are_none() -> None:
    """In UTC they would be in the year 10000, or before the first."""
    assert moment_of("9999-12-31T23:59:59-01:00") is None
    assert moment_of("0001-01-01T00:00:00+01:00") is None
    assert moment("2030-01-01T00:00:00") is None
    with pytest.raises(ValueError, match="year 10000"):
        ExemptionSettings.model_validate(
            {"namespace": "a", "until": "9999-12-31T23:59:59-01:00", "reason": "x"}
        )
