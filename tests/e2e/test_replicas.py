"""Two replicas behind one address: one ends or dies under a constant stream of reviews."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.arrivals import Arrivals
from tests.e2e.balancer import Balancer
from tests.e2e.builtin import KINDS
from tests.e2e.builtin import registration as built_in_registration
from tests.e2e.cluster import ControlPlane
from tests.e2e.conftest import warm
from tests.e2e.nodes import T4
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook
from tests.e2e.workloads import resnet50_job, unreadable_job

pytestmark = pytest.mark.e2e

NAME = "replicas"
NUM_THREADS = 4
NOT_YET_SEEN = 48
"""A batch size of no other test: nothing is remembered of it."""

VERDICT = "vramgate.dev/verdict"
BUSY = 'vramgate_estimator_workers{state="busy"}'

Pair = tuple[Webhook, Webhook]


@pytest.fixture(scope="module")
def pair(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Run two replicas, without a framework."""
    directory = tmp_path_factory.mktemp("replicas")
    first, second = (
        Webhook(
            directory=directory / name,
            kubeconfig=plane.credentials.kubeconfig,
            authority=plane.authority,
            preload=(),
        )
        for name in ("first", "second")
    )
    try:
        first.start()
        second.start()
        yield first, second
    finally:
        first.stop()
        second.stop()


@pytest.fixture
def arrivals(
    plane: ControlPlane, api: ApiServer, pair: Pair
) -> Iterator[tuple[Arrivals, Balancer]]:
    """Submit jobs all the time to an API server that refuses those that nobody reviewed."""
    label = {"vramgate.dev/webhook": "ignore"}  # for the webhook of the other tests
    metadata = {"name": NAME, "labels": label}
    with Balancer(*(replica.port for replica in pair)) as balancer:
        registrations = [
            registration(kind, port=balancer.port, bundle=plane.authority.pem) for kind in KINDS
        ]
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        for document in (namespace, *registrations):
            answer = api.create(document)
            assert answer.status == 201, answer.message
        job = unreadable_job(NAME, card=T4)
        poll_until(lambda: bool(api.create(job, dry_run=True).warnings), what="a first review")
        try:
            with Arrivals(plane, job, num_threads=NUM_THREADS) as running:
                yield running, balancer
        finally:
            for document in registrations:
                api.delete(document)


def test_replica_that_ends_loses_no_review_and_one_that_dies_only_those_in_flight(
    arrivals: tuple[Arrivals, Balancer], pair: Pair
) -> None:
    """SIGTERM, a fresh start, SIGKILL, a fresh start: the stream goes on all the while."""
    stream, balancer = arrivals
    first, second = pair
    poll_until(lambda: first.num_reviews() > 0 and second.num_reviews() > 0, what="reviews of both")

    first.stop()
    stream.wait_for(5 * NUM_THREADS)
    first.start()
    stream.wait_for(5 * NUM_THREADS)
    ended = [each for each in stream.all if not each.is_reviewed]
    before = len(stream.all)

    had_closed = balancer.closed[second.port]
    killed = time.monotonic()
    second.kill()
    stream.wait_for(5 * NUM_THREADS)
    in_flight = balancer.opened[second.port] - had_closed
    poll_until(lambda: first.num_reviews() > 0, what="reviews of the one started again")
    second.start()
    first.stop()
    poll_until(lambda: second.num_reviews() > 0, what="reviews of the other, started again")
    first.start()
    stream.wait_for(5 * NUM_THREADS)

    lost = [each for each in stream.all if not each.is_reviewed]
    print(
        f"\n{len(stream.all)} reviews; SIGTERM lost {len(ended)} of {before}, SIGKILL {len(lost)}"
        f" with {in_flight} connections open, the last of them told"
        f" {max((each.answered - killed for each in lost), default=0.0):.3f} s after it"
    )
    assert ended == []
    assert len(lost) <= in_flight


def test_estimate_in_the_making_is_waited_for_at_the_end(
    plane: ControlPlane, api: ApiServer, webhook: Webhook
) -> None:
    """SIGTERM comes while a worker traces the job: its review is answered all the same."""
    job = resnet50_job("enforce", batch_size=NOT_YET_SEEN, card=T4)
    before = num_busy(webhook)

    with ThreadPoolExecutor(max_workers=1) as threads:
        asked = threads.submit(ApiServer(plane.credentials).create, job, dry_run=True)
        poll_until(lambda: asked.done() or num_busy(webhook) > before, what="the estimate to begin")
        was_done = asked.done()
        with webhook.stopped():
            answer = asked.result()
    warm(webhook, api)

    print(f"\nthe estimate was {'over' if was_done else 'in the making'} when SIGTERM came")
    assert answer.status == 201, answer.message
    assert answer.body["metadata"]["annotations"][VERDICT] == "fits"


def num_busy(webhook: Webhook) -> int:
    """Return how many estimates are being made."""
    text = webhook.metrics()
    (line,) = (each for each in text.splitlines() if each.startswith(BUSY))
    return int(float(line.split()[-1]))


def registration(kind: str, *, port: int, bundle: bytes) -> dict[str, Any]:
    """Return a registration by address: a job of our namespace fails if nobody answers."""
    made = built_in_registration(kind, port=port)
    made["metadata"]["name"] = NAME
    (webhook,) = made["webhooks"]
    webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": NAME}}
    webhook["clientConfig"] = {
        "url": f"https://127.0.0.1:{port}{KINDS[kind]}",
        "caBundle": base64.b64encode(bundle).decode(),
    }
    return made
