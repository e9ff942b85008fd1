"""What the webhook knows of the cluster follows it: new nodes, new labels, an API server away."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
from kubernetes import client

from tests.e2e.arrivals import Arrival, Arrivals
from tests.e2e.cluster import ControlPlane
from tests.e2e.nodes import A100, HOSTNAME, T4, GpuNode, create
from tests.e2e.processes import answers, poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook
from tests.e2e.workloads import resnet50_job

pytestmark = pytest.mark.e2e


@pytest.mark.usefixtures("webhook")
def test_next_job_knows_a_node_that_was_added_and_labels_that_changed(
    plane: ControlPlane, core: client.CoreV1Api
) -> None:
    """Nobody knows the card; then it is too small; then it is another. No verdict goes back."""
    node = dataclasses.replace(T4, name="node-late")
    changed = dataclasses.replace(A100, name=node.name)
    job = job_for(node, batch_size=256)

    with Arrivals(plane, job, num_threads=1) as arrivals:
        arrivals.wait_for(3)
        added = time.monotonic()
        create(node, core)
        denied = arrivals.wait_until(is_denied, what="a denial on the new node")
        relabelled = time.monotonic()
        core.patch_node(node.name, {"metadata": {"labels": changed.labels}})
        admitted = arrivals.wait_until(is_admitted, what="a pass on the larger card")
        arrivals.wait_for(3)
        core.delete_node(node.name)

    seen = [word for word, _ in groupby(map(word_of, arrivals.all))]
    print(
        f"\n{len(arrivals.all)} jobs; a new node was known {denied.answered - added:.2f} s,"
        f" new labels {admitted.answered - relabelled:.2f} s after the change was sent"
    )
    assert seen[:3] == ["warned", "denied", "admitted"]


def test_api_server_that_was_away_is_followed_again(
    plane: ControlPlane, api: ApiServer, core: client.CoreV1Api, webhook: Webhook
) -> None:
    """Without it the webhook stays ready; afterwards it knows new nodes, namespaces and labels."""
    node = dataclasses.replace(T4, name="node-after-restart")
    job = job_for(node, batch_size=256)
    metadata = {"name": "after-restart", "labels": {"vramgate.dev/mode": "off"}}
    loose = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}

    with plane.apiserver.away():
        assert answers(f"{webhook.url}/readyz", authority=plane.authority.path)
    back = time.monotonic()

    assert api.create(resnet50_job("enforce", batch_size=256, card=T4), dry_run=True).status == 403
    create(node, core)
    poll_until(asked(api, job, is_status=403), what="a denial on the node made since")
    print(f"\na node made after the restart was known {time.monotonic() - back:.2f} s after it")
    assert api.create(loose).status == 201
    poll_until(
        asked(api, resnet50_job("after-restart", batch_size=256, card=T4), is_status=201),
        what="the mode of the namespace made since",
    )
    core.delete_node(node.name)


def job_for(node: GpuNode, *, batch_size: int) -> dict[str, Any]:
    """Return a Job that may go to *node* alone."""
    job = resnet50_job("enforce", batch_size=batch_size, card=node)
    job["spec"]["template"]["spec"]["nodeSelector"] = {HOSTNAME: node.name}
    return job


def asked(api: ApiServer, job: dict[str, Any], *, is_status: int) -> Callable[[], bool]:
    """Return a condition: the API server answers *job* so."""
    return lambda: api.create(job, dry_run=True).status == is_status


def is_denied(arrival: Arrival) -> bool:
    """Return whether the job was refused."""
    return word_of(arrival) == "denied"


def is_admitted(arrival: Arrival) -> bool:
    """Return whether the job passed without a word."""
    return word_of(arrival) == "admitted"


def word_of(arrival: Arrival) -> str:
    """Return what became of a job, in one word."""
    if arrival.status == 201:
        return "warned" if arrival.warnings else "admitted"
    return "denied" if arrival.status == 403 else f"failed: {arrival.status} {arrival.message}"
