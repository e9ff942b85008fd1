"""An API server that takes connections and answers none: noticed, told once, waited out."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client

from tests.e2e.builtin import (
    KINDS,
    NAMESPACE,
    Replica,
    registration,
    roles,
    service,
    service_account,
    write_kubeconfig,
)
from tests.e2e.cluster import ControlPlane
from tests.e2e.forwarder import Forwarder
from tests.e2e.nodes import T4, create
from tests.e2e.processes import free_ports, poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.workloads import unreadable_job

pytestmark = pytest.mark.e2e

PRODUCT = "NVIDIA-L4-WHILE-HUNG"
"""A card that no other node has: its series says that the node is known."""


@pytest.fixture
def way(plane: ControlPlane) -> Iterator[Forwarder]:
    """A way to the API server for the replica alone: the API server itself is well."""
    (port,) = free_ports(1)
    made = Forwarder(port, target=plane.ports.apiserver)
    yield made
    made.cut()


@pytest.fixture
def replica(
    plane: ControlPlane,
    api: ApiServer,
    core: client.CoreV1Api,
    way: Forwarder,
    tmp_path: Path,
) -> Iterator[Replica]:
    """A replica with built-in certificates that is called by its Service; not started yet."""
    made = Replica("hung", directory=tmp_path, kubeconfig=tmp_path / "kubeconfig")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    registrations = [registration(kind, port=made.port) for kind in KINDS]
    for document in (namespace, service_account(), *roles()):
        assert api.create(document).status in (201, 409)
    for document in (service(made.port), *registrations):
        api.delete(document)
        answer = api.create(document)
        assert answer.status == 201, answer.message
    write_kubeconfig(
        tmp_path / "kubeconfig", credentials=plane.credentials, core=core, port=way.port
    )
    yield made
    made.stop()
    for document in registrations:
        api.delete(document)


def test_api_server_that_hangs_is_named_and_waited_out(
    api: ApiServer, core: client.CoreV1Api, way: Forwarder, replica: Replica
) -> None:
    """At the start and later: what is known is served on, and what changed meanwhile is seen."""
    node = dataclasses.replace(T4, name="node-while-hung", product=PRODUCT)
    way.hang()
    replica.start()
    poll_until(lambda: replica.is_alive, what="an answer without the API server")
    poll_until(lambda: replica.num_problems("api-server-away") == 1, what="the keeper to say so")
    poll_until(lambda: is_interrupted(replica, "nodes"), what="the watches to say so")
    assert not replica.is_ready

    way.cut()
    way.open()
    poll_until(lambda: replica.is_ready, what="a replica that is ready by itself")
    poll_until(lambda: replica.log().count("answers again") == 1, what="every watch to go on")
    poll_until(lambda: is_reviewed(api), what="a review")
    assert not is_interrupted(replica, "nodes")
    certificate, lines = replica.served(), len(replica.log().splitlines())

    way.cut()
    began = time.monotonic()
    way.hang()
    poll_until(lambda: is_interrupted(replica, "nodes"), what="the watches to say so again")
    noticed = time.monotonic()
    create(node, core)
    assert is_reviewed(api)
    assert replica.is_ready
    assert replica.served() == certificate
    assert PRODUCT not in replica.metrics()

    way.cut()
    way.open()
    back = time.monotonic()
    poll_until(lambda: PRODUCT in replica.metrics(), what="the node made meanwhile")
    print(f"\nnoticed after {noticed - began:.1f} s, over {time.monotonic() - back:.1f} s after")
    poll_until(lambda: replica.log().count("answers again") == 2, what="every watch to go on")
    told = replica.log().splitlines()[lines:]
    assert sum("api server away" in line for line in told) == 1
    assert not is_interrupted(replica, "nodes")
    core.delete_node(node.name)


def is_interrupted(replica: Replica, resource: str) -> bool:
    """Return whether `/metrics` says that *resource* is not followed."""
    return f'vramgate_watch_interrupted{{resource="{resource}"}} 1.0' in replica.metrics()


def is_reviewed(api: ApiServer) -> bool:
    """Return whether the API server calls the replica and believes it."""
    answer = api.create(unreadable_job(NAMESPACE, card=T4), dry_run=True)
    return answer.status == 201 and bool(answer.warnings)
