"""Where the real scheduler puts jobs among five nodes, and what parts of cards hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from kubernetes import client

from tests.e2e.nodes import A10, A100, HOSTNAME, POOL, T4, GpuNode, Slice, create
from tests.e2e.processes import poll_until
from tests.e2e.rest import Answer, ApiServer
from tests.e2e.workloads import resnet50_job

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("webhook")]

CARDS, PARTS = "cards", "parts"
"""Pools: whole cards, one a node, and cards that are divided."""

NODES = tuple(
    dataclasses.replace(card, name=f"{card.name}-{number}", pool=CARDS, count=1)
    for card, count in ((T4, 2), (A10, 2), (A100, 1))
    for number in range(count)
)

SMALL, MEDIUM, LARGE = 64, 192, 256
"""Batch sizes: for 16 GiB; too large for that and well within 24; too large for 24."""

SLICED = dataclasses.replace(
    A100,
    name="node-sliced",
    pool=PARTS,
    count=6,
    slices=(
        Slice(profile="1g.5gb", memory_mib=4864, count=7),
        Slice(profile="3g.20gb", memory_mib=20096, count=2),
    ),
)

SHARED = dataclasses.replace(
    A10,
    name="node-shared",
    pool=PARTS,
    registration="GPU-0,10,23028,100,NVIDIA-NVIDIA A10,0,true:",
)


@pytest.fixture(scope="module", autouse=True)
def _nodes(core: client.CoreV1Api, api: ApiServer, webhook: object) -> Iterator[None]:
    """Have both pools for the length of these tests, known to the webhook."""
    made = (*NODES, SLICED, SHARED)
    for node in made:
        create(node, core)
    for node in made:
        job = job_in(node.pool, batch_size=SMALL)
        job["spec"]["template"]["spec"]["nodeSelector"] = {HOSTNAME: node.name}
        poll_until(partial(is_silent, api, job), what=f"{node.name} to be known")
    yield
    for node in made:
        core.delete_node(node.name)


def test_each_of_five_jobs_lands_on_the_smallest_card_that_holds_it(
    api: ApiServer, core: client.CoreV1Api
) -> None:
    """In any order: nothing small takes a card that only something larger can use."""
    cards = {node.name: node.product for node in NODES}
    landed = []

    for batch_size in (SMALL, LARGE, MEDIUM, SMALL, MEDIUM):
        job = job_in(CARDS, batch_size=batch_size)
        answer = api.create(job)
        assert answer.status == 201, answer.message
        landed.append((batch_size, cards[node_of(core, job)]))

    assert sorted(landed) == [
        (SMALL, T4.product),
        (SMALL, T4.product),
        (MEDIUM, A10.product),
        (MEDIUM, A10.product),
        (LARGE, A100.product),
    ]


def test_affinity_of_the_person_decides(api: ApiServer, core: client.CoreV1Api) -> None:
    """A small job that is to run on the largest card does; one too large for its card is denied."""
    placed = with_product(job_in(PARTS, batch_size=SMALL), A100)
    answers = [
        api.create(with_product(job_in(CARDS, batch_size=size), card), dry_run=True)
        for size, card in ((SMALL, A100), (LARGE, T4), (MEDIUM, A10))
    ]

    assert [answer.status for answer in answers] == [201, 403, 201]
    for answer, card in zip(answers[::2], (A100, A10), strict=True):
        terms = required_terms(answer)
        assert all(own_term(card) in term["matchExpressions"] for term in terms)
    assert T4.product in answers[1].message
    assert api.create(placed).status == 201
    assert node_of(core, placed) == SLICED.name


def test_job_that_asks_for_a_slice_lands_where_there_is_one(
    api: ApiServer, core: client.CoreV1Api
) -> None:
    """What is added for the slice's memory does not keep the scheduler from the node."""
    job = asking(job_in(PARTS, batch_size=SMALL), {"nvidia.com/mig-3g.20gb": "1"})

    answer = api.create(job)

    assert (answer.status, answer.warnings) == (201, ()), answer.message
    assert node_of(core, job) == SLICED.name


@pytest.mark.parametrize(
    ("batch_size", "limits", "is_admitted"),
    [
        (SMALL, {"nvidia.com/mig-1g.5gb": "1"}, False),
        (SMALL, {"nvidia.com/mig-3g.20gb": "1"}, True),
        (LARGE, {"nvidia.com/mig-3g.20gb": "1"}, False),
        (SMALL, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}, False),
        (SMALL, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "10000"}, True),
        (LARGE, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "10000"}, False),
    ],
)
def test_part_of_a_card_is_the_budget(
    api: ApiServer, batch_size: int, limits: Mapping[str, str], is_admitted: bool
) -> None:
    """A MIG slice (strategy `mixed`) and what a job declares to HAMi hold what they hold."""
    job = asking(job_in(PARTS, batch_size=batch_size), limits)

    answer = api.create(job, dry_run=True)

    assert answer.status == (201 if is_admitted else 403), answer.message
    (part,) = limits.keys() - {"nvidia.com/gpu"}
    assert is_admitted or part.removeprefix("nvidia.com/").removeprefix("mig-") in answer.message


def job_in(pool: str, *, batch_size: int) -> dict[str, Any]:
    """Return a Job that may go to every node of *pool*."""
    job = resnet50_job("enforce", batch_size=batch_size, card=T4)
    job["spec"]["template"]["spec"]["nodeSelector"] = {POOL: pool}
    return job


def asking(job: dict[str, Any], limits: Mapping[str, str]) -> dict[str, Any]:
    """Return *job* with other *limits*."""
    resources = job["spec"]["template"]["spec"]["containers"][0]["resources"]
    resources["limits"] = {"cpu": "1", **limits}
    return job


def with_product(job: dict[str, Any], card: GpuNode) -> dict[str, Any]:
    """Return *job* with a node affinity of the person's."""
    terms = [{"matchExpressions": [own_term(card)]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    job["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": required}
    return job


def own_term(card: GpuNode) -> dict[str, Any]:
    """Return what a person writes who wants *card*."""
    return {"key": "nvidia.com/gpu.product", "operator": "In", "values": [card.product]}


def required_terms(answer: Answer) -> list[dict[str, Any]]:
    """Return the terms that the pods of an admitted Job are placed by."""
    affinity = answer.body["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    found: list[dict[str, Any]] = required["nodeSelectorTerms"]
    return found


def is_silent(api: ApiServer, job: dict[str, Any]) -> bool:
    """Return whether *job* passes without a word."""
    answer = api.create(job, dry_run=True)
    return answer.status == 201 and not answer.warnings


def node_of(core: client.CoreV1Api, job: dict[str, Any]) -> str:
    """Return the node that the scheduler gave the pod of *job*."""
    selector = f"batch.kubernetes.io/job-name={job['metadata']['name']}"

    def nodes() -> list[str]:
        pods = core.list_namespaced_pod("enforce", label_selector=selector).items
        return [str(pod.spec.node_name) for pod in pods if pod.spec.node_name]

    poll_until(lambda: bool(nodes()), what=f"a node for {selector}")
    return nodes()[0]
