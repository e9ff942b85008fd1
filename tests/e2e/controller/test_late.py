"""Jobs that were let in unjudged hear from the controller what came of it."""

from __future__ import annotations

import json

import pytest

from admission.steer.notes import VERDICT
from tests.e2e.controller.apart import Apart, job
from tests.e2e.controller.conftest import Start
from tests.e2e.nodes import A10, A100, T4, GpuNode, create
from tests.e2e.processes import poll_until
from tests.e2e.workloads import SPEC_ANNOTATION, pod_spec, resnet50_spec, script_config_map
from tests.e2e.workloads import scripted_job as scripted

pytestmark = pytest.mark.e2e

UNKNOWN = {VERDICT: "unknown"}
LARGE = GpuNode(name="node-h100", product="NVIDIA-H100-80GB-HBM3", memory_mib=81559, compute=(9, 0))


def spec(batch_size: int) -> dict[str, str]:
    """Return the annotation that says what is trained."""
    return {SPEC_ANNOTATION: json.dumps(resnet50_spec(batch_size=batch_size))}


def test_job_and_pod_are_told_once_each(alone: Apart, start_alone: Start) -> None:
    """The estimate came after both were there; a controller that starts again says no more."""
    namespace = alone.namespace()
    made = alone.create(
        job(namespace, spec(256), pod=pod_spec(num_gpus=1, card=None), notes=UNKNOWN)
    )
    poll_until(lambda: bool(alone.pods(made)), what="a pod of the Job")
    (pod,) = alone.pods(made)
    pod = {"apiVersion": "v1", "kind": "Pod", **pod}
    controller = start_alone()

    for obj in (made, pod):
        poll_until(
            lambda obj=obj: verdict(alone, obj) == "tight",  # type: ignore[misc]
            what=f"a verdict on the {obj['kind']}",
            seconds=300,
        )
    controller.kill()
    controller.start()
    poll_until(controller.leads, what="the next controller to lead")
    poll_until(lambda: controller.value("vramgate_controller_queue") == 0, what="nothing to do")

    # That its pod landed on the T4 is told as well, by another duty.
    assert alone.reasons(made).count("GpuMemoryEstimated") == 1
    assert alone.reasons(pod).count("GpuMemoryEstimated") == 1
    assert A100.product in alone.events(made)[0][1]
    assert T4.product in alone.events(made)[0][1]


def test_a_config_map_that_comes_later_is_read(alone: Apart, start_alone: Start) -> None:
    """It was not there yet when the Job that mounts it was created."""
    namespace = alone.namespace()
    config_map = script_config_map(namespace, batch_size=1024)
    document = scripted(namespace, config_map=config_map["metadata"]["name"], card=T4)
    document["metadata"]["annotations"] = UNKNOWN
    made = alone.create(document)
    controller = start_alone()
    poll_until(controller.leads, what="to lead")
    alone.create(config_map)

    poll_until(lambda: verdict(alone, made) == "oom", what="a verdict on the Job", seconds=300)

    # Its pod may run already, and that it is on a card too small is told of by itself.
    told = [text for reason, text in alone.events(made) if reason != "GpuMemoryWrongCard"]
    assert alone.reasons(made).count("GpuMemoryTooLarge") == 1
    (message,) = told
    assert "needs at least" in message


def test_a_card_that_comes_later_is_taken_into_account(alone: Apart, start_alone: Start) -> None:
    """No node was open to its pods; and what is not readable hears nothing."""
    namespace = alone.namespace()
    made = alone.create(
        job(namespace, spec(64), pod=pod_spec(num_gpus=1, card=LARGE), notes=UNKNOWN)
    )
    silent = alone.create(job(namespace, {}, pod=pod_spec(num_gpus=1, card=A10), notes=UNKNOWN))
    controller = start_alone()
    poll_until(controller.leads, what="to lead")
    poll_until(lambda: '"leading"' in controller.log, what="to work")
    assert alone.reasons(made) == []

    create(LARGE, alone.core)
    try:
        poll_until(lambda: verdict(alone, made) == "fits", what="a verdict", seconds=300)
    finally:
        alone.core.delete_node(LARGE.name)

    assert alone.reasons(made) == ["GpuMemoryEstimated"]
    assert alone.reasons(silent) == []
    assert verdict(alone, silent) == "unknown"


def verdict(alone: Apart, obj: object) -> str:
    """Return the verdict that is written on an object."""
    found = alone.now(obj)["metadata"]["annotations"]  # type: ignore[arg-type]
    return str(found[VERDICT])
