"""Pods that wait for a card because of our steering are told so, and let go if they may be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.controller.apart import Apart, job
from tests.e2e.controller.conftest import Start
from tests.e2e.nodes import A100, T4
from tests.e2e.processes import poll_until
from tests.e2e.workloads import SPEC_ANNOTATION, pod_spec, resnet50_pytorchjob, resnet50_spec

pytestmark = pytest.mark.e2e

TIGHT = 160
"""A batch that an A100 holds and a T4 may: 13.0 to 15.6 GiB of its 14.5."""


def test_a_missing_card_is_told_and_a_pytorchjob_is_let_go(
    alone: Apart, start_alone: Start
) -> None:
    """A Job's template is fixed by then; the training operator makes pods anew from its own."""
    namespace = alone.namespace()
    taken = alone.create(bare_pod(namespace, gpus=A100.count))
    poll_until(lambda: bool(node_of(alone, taken)), what="all A100 to be taken")
    assert node_of(alone, taken) == A100.name
    spec = {SPEC_ANNOTATION: json.dumps(resnet50_spec(batch_size=TIGHT))}
    made = alone.create(job(namespace, spec, pod=pod_spec(num_gpus=1, card=None), suspend=True))
    replicated = resnet50_pytorchjob(namespace, batch_size=TIGHT, card=A100)
    del template_of(replicated)["spec"]["nodeSelector"]
    replicated["spec"]["runPolicy"] = {"suspend": True}
    replicated = dict(alone.create(replicated))
    controller = start_alone(stuckSeconds=1, relaxSteering=True)
    for each in (made, replicated):
        poll_until(
            lambda each=each: alone.reasons(each) == ["GpuMemorySteered"],  # type: ignore[misc]
            what=f"word of terms on the {each['kind']}",
            seconds=240,
        )
    # It is said first, and then written.
    poll_until(lambda: "affinity" in template_of(alone.now(replicated))["spec"], what="terms")
    poll_until(lambda: "affinity" in alone.now(made)["spec"]["template"]["spec"], what="terms")
    before = template_of(alone.now(replicated))

    assert alone.api.patch(made, {"spec": {"suspend": False}}).status == 200
    resumed = {"spec": {"runPolicy": {"suspend": False}}}
    assert alone.api.patch(replicated, resumed).status == 200
    status = {"status": {"startTime": "2030-01-01T00:00:00Z"}}
    assert alone.api.patch(replicated, status, subresource="status").status == 200
    waiting = alone.create(pod_of(alone.now(replicated)))

    poll_until(lambda: bool(alone.pods(made)), what="a pod of the Job")
    (pod,) = alone.pods(made)
    pod = {"apiVersion": "v1", "kind": "Pod", **pod}
    poll_until(lambda: bool(alone.reasons(pod)), what="an Event on the pod")
    poll_until(lambda: alone.api.get(waiting).status == 404, what="its pod deleted")
    poll_until(lambda: controller.value("vramgate_rescheduled_total", reason="stuck") == 1, what="")

    ((reason, message),) = alone.events(pod)
    assert reason == "GpuMemoryCardMissing"
    assert f"{A100.product} (8 of 8 taken)" in message
    assert f"{T4.product} (0 of 8 taken)" in message
    assert alone.api.get(pod).status == 200
    assert alone.reasons(replicated) == ["GpuMemorySteered", "GpuMemorySteeringRelaxed"]
    after = template_of(alone.now(replicated))
    assert threshold(after) < T4.memory_mib <= threshold(before)
    # As the operator would: the next pod of the template goes to the card that is free.
    again = alone.create(pod_of(alone.now(replicated)))
    poll_until(lambda: bool(node_of(alone, again)), what="a node for the next pod")
    assert node_of(alone, again) == T4.name


def bare_pod(namespace: str, *, gpus: int) -> dict[str, Any]:
    """Return a pod that takes all cards of an A100 node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": "taken"},
        "spec": pod_spec(num_gpus=gpus, card=A100),
    }


def template_of(replicated: Any) -> Any:
    """Return the pod template of a PyTorchJob's master."""
    return replicated["spec"]["pytorchReplicaSpecs"]["Master"]["template"]


def pod_of(replicated: dict[str, Any]) -> dict[str, Any]:
    """Return the pod that the training operator makes of it."""
    metadata, template = replicated["metadata"], template_of(replicated)
    owner = {
        "apiVersion": replicated["apiVersion"],
        "kind": replicated["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **template.get("metadata", {}),
            "namespace": metadata["namespace"],
            "name": f"{metadata['name']}-master-0",
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }


def node_of(alone: Apart, pod: Any) -> str | None:
    """Return the node that a pod is bound to."""
    found: str | None = alone.now(pod)["spec"].get("nodeName")
    return found


def threshold(template: Any) -> int:
    """Return the memory in MiB that a node must have more of."""
    node = template["spec"]["affinity"]["nodeAffinity"]
    (term,) = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return int(term["matchExpressions"][0]["values"][0])
