"""Submit jobs that say nothing of nodes and see where the real scheduler puts them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubernetes import client

from tests.e2e.nodes import A100, T4, GpuNode
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.workloads import SPEC_ANNOTATION, resnet50_cronjob, resnet50_job

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("webhook")]

NOW = client.V1DeleteOptions(grace_period_seconds=0, propagation_policy="Background")
VERDICT = "vramgate.dev/verdict"
LEAST = "vramgate.dev/least-bytes"


@pytest.fixture(autouse=True)
def _free_cards(core: client.CoreV1Api) -> None:
    """Take away what other tests left on the cards: nobody runs it, so it never ends."""
    batch = client.BatchV1Api(core.api_client)
    for namespace in core.list_namespace().items:
        batch.delete_collection_namespaced_job(namespace.metadata.name, body=NOW)

    def held() -> bool:
        selector = f"spec.nodeName={T4.name}"
        pods = core.list_pod_for_all_namespaces(field_selector=selector).items
        for pod in pods:
            core.delete_namespaced_pod(
                pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0
            )
        return bool(pods)

    poll_until(lambda: not held(), what="cards that nothing holds")


@pytest.mark.parametrize(("batch_size", "card"), [(64, T4), (256, A100)])
def test_job_lands_on_the_smallest_card_that_holds_it(
    api: ApiServer, core: client.CoreV1Api, batch_size: int, card: GpuNode
) -> None:
    """The person names no card: 64 images go to 16 GiB, 256 to 40 GiB."""
    job = unpinned_job("enforce", batch_size=batch_size)

    answer = api.create(job)

    assert answer.status == 201, answer.message
    assert answer.body["metadata"]["annotations"][VERDICT] == "fits"
    assert int(answer.body["metadata"]["annotations"][LEAST]) > 0
    assert node_of(core, job["metadata"]["name"]) == card.name


def test_terms_of_the_person_stay(api: ApiServer) -> None:
    """What is added stands beside what was written, in every term."""
    job = unpinned_job("enforce", batch_size=64)
    own = {"key": "team", "operator": "In", "values": ["a", "b"]}
    terms = [{"matchExpressions": [own]}, {"matchExpressions": [own]}]
    pod = job["spec"]["template"]["spec"]
    pod["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }

    answer = api.create(job, dry_run=True)

    assert answer.status == 201, answer.message
    affinity = answer.body["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert len(required) == len(terms)
    assert all(own in term["matchExpressions"] for term in required)


def test_job_that_runs_may_be_applied_again(api: ApiServer, core: client.CoreV1Api) -> None:
    """A running Job's template cannot change: the same spec, written again, leaves it as it is."""
    job = unpinned_job("enforce", batch_size=64)
    assert api.create(job).status == 201
    node_of(core, job["metadata"]["name"])
    rewritten = json.dumps(json.loads(job["metadata"]["annotations"][SPEC_ANNOTATION]), indent=1)

    answer = api.patch(job, {"metadata": {"annotations": {SPEC_ANNOTATION: rewritten}}})

    assert answer.status == 200, answer.message


def test_cronjob_is_steered_for_its_next_run(api: ApiServer) -> None:
    """Its template says where the jobs of the night may go."""
    document = resnet50_cronjob("enforce", batch_size=256, card=T4)
    pod = document["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    del pod["nodeSelector"]

    answer = api.create(document)

    assert answer.status == 201, answer.message
    steered = answer.body["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert "nodeAffinity" in steered["affinity"]


def unpinned_job(namespace: str, *, batch_size: int) -> dict[str, Any]:
    """Return a Job that may go to every card."""
    job = resnet50_job(namespace, batch_size=batch_size, card=T4)
    del job["spec"]["template"]["spec"]["nodeSelector"]
    return job


def node_of(core: client.CoreV1Api, job: str) -> str:
    """Return the node that the pod of *job* was put on."""

    def nodes() -> list[str]:
        selector = f"batch.kubernetes.io/job-name={job}"
        pods = core.list_namespaced_pod("enforce", label_selector=selector).items
        return [pod.spec.node_name for pod in pods if pod.spec.node_name]

    poll_until(lambda: bool(nodes()), what=f"a node for {job}")
    return nodes()[0]
