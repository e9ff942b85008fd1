"""A CronJob meets Vramgate and the real controller that starts its Jobs."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from tests.e2e.nodes import T4
from tests.e2e.operators.made import (
    IGNORED,
    LARGE,
    NAMESPACE,
    SMALL,
    affinity_of,
    denials,
    pods_of,
    unscheduled,
)
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook
from tests.e2e.workloads import resnet50_cronjob

pytestmark = pytest.mark.e2e

LONG_AGO = "2024-06-01T00:00:00Z"
"""A last run that some runs of a yearly schedule have been missed since: one is due at once."""


def test_run_of_what_was_admitted_is_steered(
    api: ApiServer, core: client.CoreV1Api, webhook: Webhook
) -> None:
    """Steered at its root: the Job of its controller and that Job's pod have the terms."""
    cronjob = yearly(batch_size=SMALL, is_pinned=False)
    before = denials(webhook)

    spec = started(api, cronjob)

    (pod,) = pods_of(core, f"cron={cronjob['metadata']['name']}", number=1)
    wanted = spec["jobTemplate"]["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    assert affinity_of(pod) == wanted
    assert denials(webhook) == before


def test_run_of_what_we_never_saw_is_not_denied(api: ApiServer, core: client.CoreV1Api) -> None:
    """Denied to a person, and let through when its controller asks."""
    denied, cronjob = (yearly(batch_size=LARGE, is_pinned=True) for _ in range(2))
    cronjob["metadata"]["labels"] = IGNORED

    assert api.create(denied).status == 403
    started(api, cronjob)

    pods_of(core, f"cron={cronjob['metadata']['name']}", number=1)


def yearly(*, batch_size: int, is_pinned: bool) -> dict[str, Any]:
    """Return a CronJob that waits, and whose pods are labelled with its name."""
    document = resnet50_cronjob(NAMESPACE, batch_size=batch_size, card=T4)
    document["spec"] |= {"schedule": "0 0 1 1 *", "suspend": True}
    labels = {"cron": document["metadata"]["name"]}
    template = document["spec"]["jobTemplate"]["spec"]["template"]
    template["metadata"] = {"labels": labels}
    unscheduled(template, is_pinned=is_pinned)
    return document


def started(api: ApiServer, cronjob: dict[str, Any]) -> dict[str, Any]:
    """Create *cronjob* as one whose run is due, and return its spec as it was stored."""
    answer = api.create(cronjob)
    assert answer.status == 201, answer.message
    due = api.patch(cronjob, {"status": {"lastScheduleTime": LONG_AGO}}, subresource="status")
    assert due.status == 200, due.message
    resumed = api.patch(cronjob, {"spec": {"suspend": False}})
    assert resumed.status == 200, resumed.message
    return dict(answer.body["spec"])
