"""Pods whose estimate is late wait behind a gate until the controller lets them go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from admission.steer.gates import GATE, gates_of
from admission.steer.notes import VERDICT
from admission.steer.terms import RECORD
from tests.chart.rendering import documents
from tests.e2e.controller.apart import Apart, job
from tests.e2e.controller.conftest import Start
from tests.e2e.nodes import A100, T4
from tests.e2e.processes import poll_until
from tests.e2e.webhook import KINDS, calling
from tests.e2e.webhook_process import Webhook
from tests.e2e.workloads import SPEC_ANNOTATION, pod_spec, resnet50_spec

pytestmark = pytest.mark.e2e

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GATING = {"config": {"steering": {"gate": True}}, "controller": {"enabled": True}}


class GatingWebhook(Webhook):
    """A webhook that holds pods, and imports no framework before it is asked."""

    def _argv(self, port: int) -> list[str]:
        argv = super()._argv(port)
        path = self._directory / "settings.yaml"
        settings = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({**settings, "steering": {"gate": True}}))
        return argv


@pytest.fixture
def gated_namespace(alone: Apart, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Register such a webhook, as the chart does, for one namespace; it has a second a review."""
    webhook = GatingWebhook(
        directory=tmp_path_factory.mktemp("webhook"),
        kubeconfig=alone.plane.credentials.kubeconfig,
        authority=alone.plane.authority,
        preload=(),
    )
    webhook.start()
    namespace = alone.namespace()
    selected = {
        "key": "kubernetes.io/metadata.name",
        "operator": "In",
        "values": [namespace],
    }
    made = []
    try:
        for document in documents(GATING):
            if document["kind"] not in KINDS:
                continue
            pem = alone.plane.authority.pem
            configuration = calling(document, url=webhook.url, ca_bundle=pem)
            for each in configuration["webhooks"]:
                each["timeoutSeconds"] = 1
                each["namespaceSelector"]["matchExpressions"].append(selected)
            made.append(alone.create(configuration))
        poll_until(lambda: is_asked(alone, namespace), what="a first call of the webhook")
        yield namespace
    finally:
        for registered in made:
            alone.api.delete(registered)
        webhook.stop()


def test_jobs_pod_waits_for_its_estimate_and_goes_where_it_fits(
    alone: Apart, gated_namespace: str, start_alone: Start
) -> None:
    """The Job was let in unjudged; its pod does not land on the card that is too small."""
    spec = {SPEC_ANNOTATION: json.dumps(resnet50_spec(batch_size=256))}
    made = alone.create(job(gated_namespace, spec, pod=pod_spec(num_gpus=1, card=None)))
    poll_until(lambda: bool(alone.pods(made)), what="a pod of the Job")
    (pod,) = alone.pods(made)
    assert gates_of(pod) == (GATE,)
    pod = {"apiVersion": "v1", "kind": "Pod", **pod}
    controller = start_alone()

    poll_until(lambda: bool(alone.now(pod)["spec"].get("nodeName")), what="a node", seconds=240)

    found = alone.now(pod)
    assert found["spec"]["nodeName"] == A100.name
    assert found["metadata"]["annotations"][VERDICT] == "fits"
    assert RECORD in found["metadata"]["annotations"]
    assert alone.reasons(pod) == ["GpuMemoryEstimated"]
    assert controller.value("vramgate_rescheduled_total", reason="estimating") == 1
    ours = [each for each in found["metadata"]["managedFields"] if each["manager"] == "vramgate"]
    assert len(ours) == 1


def test_gate_affinity_and_terms_of_ones_own_go_together(alone: Apart, start_alone: Start) -> None:
    """The API server takes both in one patch; a controller that is killed leaves no half of it."""
    namespace = alone.namespace()
    own = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
    term = {"matchExpressions": [own]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    waiting = alone.create(gated_pod(namespace, 256, affinity=affinity))
    controller = start_alone()
    poll_until(controller.leads, what="to lead")
    controller.kill()
    assert gates_of(alone.now(waiting)) in ((GATE,), ())
    controller.start()

    poll_until(lambda: bool(alone.now(waiting)["spec"].get("nodeName")), what="a node", seconds=240)

    found = alone.now(waiting)
    (after,) = found["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert after["matchExpressions"][0] == own
    assert after["matchExpressions"][1]["operator"] == "Gt"
    assert found["spec"]["nodeName"] == A100.name
    assert alone.reasons(waiting) == ["GpuMemoryEstimated"]


def test_nobody_waits_for_ever(alone: Apart, start_alone: Start) -> None:
    """What no card holds is told; what is too late, or not readable, goes on as it is."""
    namespace = alone.namespace()
    huge = alone.create(gated_pod(namespace, 4096))
    unreadable = alone.create(gated_pod(namespace, None))
    start_alone()
    for each in (huge, unreadable):
        poll_until(
            lambda each=each: gates_of(alone.now(each)) == (),  # type: ignore[misc]
            what="the gate off",
            seconds=240,
        )
    late = alone.create(gated_pod(alone.namespace(labels={"vramgate.dev/mode": "off"}), 300))
    poll_until(lambda: gates_of(alone.now(late)) == (), what="the gate off where the mode is off")

    # Where it lands then is told by another duty.
    (reason, message), *_ = alone.events(huge)
    assert reason == "GpuMemoryTooLarge"
    assert "needs at least" in message
    assert "admitted already" in message
    assert alone.reasons(unreadable) == ["GpuMemoryNotEstimated"]
    assert "affinity" not in alone.now(late)["spec"]


def test_the_gate_is_off_when_its_time_is_over(alone: Apart, start_alone: Start) -> None:
    """Whatever the estimate is doing."""
    waiting = alone.create(gated_pod(alone.namespace(), 320))
    start_alone(gateSeconds=1)

    poll_until(lambda: gates_of(alone.now(waiting)) == (), what="the gate off")

    ((reason, message),) = alone.events(waiting)
    assert reason == "GpuMemoryNotEstimated"
    assert "within 1 s (controller.gateSeconds)" in message


def test_a_gate_can_be_taken_off_by_hand(alone: Apart) -> None:
    """As docs/controller.md says, where no controller is left; others' gates stay."""
    pod = gated_pod(alone.namespace(), 256)
    pod["spec"]["schedulingGates"].append({"name": "example.com/other"})
    waiting = alone.create(pod)

    answer = alone.api.patch(
        waiting, {"spec": {"schedulingGates": [{"name": "example.com/other"}]}}
    )

    assert answer.status == 200, answer.message
    assert gates_of(alone.now(waiting)) == ("example.com/other",)


def gated_pod(namespace: str, batch_size: int | None, **spec: Any) -> dict[str, Any]:
    """Return a pod as the webhook leaves one whose estimate is late."""
    annotations = {VERDICT: "unknown"}
    if batch_size is not None:
        annotations[SPEC_ANNOTATION] = json.dumps(resnet50_spec(batch_size=batch_size))
    name = f"waits-{batch_size or 'unread'}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "annotations": annotations},
        "spec": {
            **pod_spec(num_gpus=1, card=None),
            "schedulingGates": [{"name": GATE}],
            **spec,
        },
    }


def is_asked(alone: Apart, namespace: str) -> bool:
    """Return whether the API server has taken up the registration."""
    unreadable = job(namespace, {}, pod=pod_spec(num_gpus=1, card=T4))
    return bool(alone.api.create(unreadable, dry_run=True).warnings)
