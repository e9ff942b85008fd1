"""Of a pod is kept who it is, which containers it has and what our annotations say."""

from __future__ import annotations

from typing import Any

from admission.agent.pods import Owner, Pod, cut_pod, pods_of, resource_of
from admission.peaks import ANNOTATION
from admission.steer.notes import ESTIMATE


def a_pod(name: str, *, namespace: str = "one", phase: str = "Running", **status: Any) -> Any:
    """Return a pod as the API server has it."""
    annotations = {ESTIMATE: "1000", ANNOTATION: "{}", "other": "x" * 100}
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"}
    return {
        "metadata": {**metadata, "annotations": annotations, "managedFields": [{}]},
        "spec": {"nodeName": "a"},
        "status": {"phase": phase, **status},
    }


def snapshot(*pods: Any) -> Any:
    """Return what a watch publishes of *pods*."""
    kept = [cut_pod(each) for each in pods]
    return {each["metadata"]["name"]: each for each in kept}


def test_containers_of_every_sort_and_runtime_lead_to_their_pod() -> None:
    """Sidecars and debuggers too; one that has not started has no id."""
    pod = a_pod(
        "train",
        containerStatuses=[
            {"name": "main", "containerID": "containerd://aa"},
            {"name": "waiting", "containerID": ""},
        ],
        initContainerStatuses=[{"name": "beside", "containerID": "cri-o://bb"}],
        ephemeralContainerStatuses=[{"name": "debug", "containerID": "docker://cc"}],
    )

    found = pods_of(snapshot(pod))

    assert found.owners == {
        "aa": Owner(uid="one-train", container="main"),
        "bb": Owner(uid="one-train", container="beside"),
        "cc": Owner(uid="one-train", container="debug"),
    }


def test_pods_of_one_name_are_kept_apart() -> None:
    """By their namespaces."""
    found = pods_of(snapshot(a_pod("train"), a_pod("train", namespace="two")))

    assert found.by_uid["one-train"] == Pod(
        uid="one-train", namespace="one", name="train", estimate=1000, peaks="{}"
    )
    assert found.by_uid["two-train"].namespace == "two"


def test_pod_that_has_ended_has_no_containers() -> None:
    """Thousands of them may be left on a node."""
    statuses = [{"name": "main", "containerID": "containerd://aa"}]
    found = pods_of(snapshot(a_pod("train", phase="Failed", containerStatuses=statuses)))

    assert found.owners == {}
    assert found.by_uid["one-train"].ended == "failed"


def test_estimate_that_is_no_number_is_none() -> None:
    """An annotation is anybody's."""
    pod = a_pod("train")
    for text in ("", "-1", "1e9", "9" * 30, "٣"):
        pod["metadata"]["annotations"][ESTIMATE] = text

        assert pods_of(snapshot(pod)).by_uid["one-train"].estimate is None


def test_pods_of_this_node_alone_are_asked_for() -> None:
    """The API server need not send those of all others."""
    query = resource_of("node-a").query({"limit": "10"})

    assert query == {"limit": "10", "fieldSelector": "spec.nodeName=node-a"}
