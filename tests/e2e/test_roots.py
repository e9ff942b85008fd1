"""Denied once, where a person writes it: what a controller makes of it is never denied."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client

from tests.e2e import jobset
from tests.e2e.conftest import has_service_account, is_established
from tests.e2e.nodes import T4
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook
from tests.e2e.workloads import resnet50_cronjob, resnet50_job

pytestmark = pytest.mark.e2e

TOO_LARGE = 256
"""Images a step; a 16 GiB card does not hold them."""

Document = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def _kind(api: ApiServer, webhook: Webhook) -> None:
    """Teach the API server the kind JobSet."""
    document = jobset.definition()
    answer = api.create(document)
    assert answer.status in (201, 409), answer.message  # tests of operators teach it too
    poll_until(lambda: is_established(api.get(document).body), what="the kind JobSet")
    root = jobset.resnet50_jobset("enforce", batch_size=TOO_LARGE, card=T4)
    poll_until(lambda: api.create(root, dry_run=True).status != 404, what="the kind served")


@pytest.mark.parametrize("make", [jobset.resnet50_jobset, resnet50_cronjob])
def test_root_is_denied_once_and_nothing_is_left_of_it(
    api: ApiServer, webhook: Webhook, make: Callable[..., Document]
) -> None:
    """One denial is counted, with the reason, and no Job comes of it."""
    root = make("enforce", batch_size=TOO_LARGE, card=T4)
    labels = {"kind": root["kind"], "action": "deny", "verdict": "oom"}
    before, jobs_before = webhook.num_reviews(**labels), num_jobs(api)

    answer = api.create(root)

    assert answer.status == 403
    assert T4.product in answer.message
    assert webhook.num_reviews(**labels) == before + 1
    assert api.get(root).status == 404
    assert num_jobs(api) == jobs_before


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("jobset.x-k8s.io/v1alpha2", "JobSet"), ("batch/v1", "CronJob")],
)
def test_job_of_a_controller_is_never_denied(api: ApiServer, api_version: str, kind: str) -> None:
    """The same Job is denied to a person, also to one who names an owner that controls nothing."""
    job = resnet50_job("enforce", batch_size=TOO_LARGE, card=T4)
    owner = {"apiVersion": api_version, "kind": kind}

    of_controller = api.create(owned(job, owner, controller=True), dry_run=True)
    of_person = api.create(owned(job, owner, controller=False), dry_run=True)

    assert of_controller.status == 201, of_controller.message
    assert of_person.status == 403


def test_pod_of_a_job_is_never_denied(api: ApiServer) -> None:
    """A Job controller whose pods are denied would try again without end."""
    job = resnet50_job("enforce", batch_size=TOO_LARGE, card=T4)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": job["metadata"]}
    pod |= {"spec": job["spec"]["template"]["spec"]}
    owner = {"apiVersion": "batch/v1", "kind": "Job"}

    of_controller = api.create(owned(pod, owner, controller=True), dry_run=True)
    of_person = api.create(pod, dry_run=True)

    assert of_controller.status == 201, of_controller.message
    assert of_person.status == 403


def test_job_that_waited_gets_its_pod_where_it_would_be_denied_now(
    api: ApiServer, core: client.CoreV1Api
) -> None:
    """Written while its namespace warned, resumed when it enforces: the real controller's pod."""
    name = "turning"
    metadata = {"name": name, "labels": {"vramgate.dev/mode": "warn"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    assert api.create(namespace).status == 201
    job = resnet50_job(name, batch_size=TOO_LARGE, card=T4)
    job["spec"]["suspend"] = True
    job["spec"]["template"]["spec"]["schedulerName"] = "nobody"  # cards are for other tests
    poll_until(lambda: api.create(job, dry_run=True).status == 201, what="the mode `warn` known")
    poll_until(lambda: has_service_account(core, name), what="a default service account")
    assert api.create(job).status == 201

    api.patch(namespace, {"metadata": {"labels": {"vramgate.dev/mode": "enforce"}}})
    another = resnet50_job(name, batch_size=TOO_LARGE, card=T4)
    poll_until(lambda: api.create(another, dry_run=True).status == 403, what="`enforce` known")
    answer = api.patch(job, {"spec": {"suspend": False}})

    assert answer.status == 200, answer.message
    selector = f"batch.kubernetes.io/job-name={job['metadata']['name']}"
    poll_until(
        lambda: bool(core.list_namespaced_pod(name, label_selector=selector).items),
        what="the pod of the resumed job",
    )


def owned(document: Document, owner: Document, *, controller: bool) -> Document:
    """Return *document* as something of *owner*, which need not exist in a dry run."""
    made = copy.deepcopy(document)
    reference = {**owner, "name": "owner", "uid": "6a7d1a52-0f0e-4a5c-9a67-0d0b6f1d1c11"}
    made["metadata"]["ownerReferences"] = [{**reference, "controller": controller}]
    return made


def num_jobs(api: ApiServer) -> int:
    """Return how many Jobs the namespace has."""
    return len(api.read("/apis/batch/v1/namespaces/enforce/jobs").body["items"])
