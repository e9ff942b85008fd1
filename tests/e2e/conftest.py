"""Share one control plane, its nodes and one webhook among all end-to-end tests.

    binaries -> control plane -> nodes, namespaces -> webhook, registered

The order matters: the webhook lists nodes and namespaces when it starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from kubernetes import client

from tests.e2e.cluster import ControlPlane, control_plane
from tests.e2e.connection import connected
from tests.e2e.controlplane.build import build
from tests.e2e.nodes import A100, T4, GpuNode, create
from tests.e2e.operators.catalog import TRAINING
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook import configurations
from tests.e2e.webhook_process import Webhook, start_webhook
from tests.e2e.workloads import resnet50_job, unreadable_job

MODE_LABEL = "vramgate.dev/mode"

MODES = ("enforce", "warn", "off")
"""Also the names of the namespaces: one a mode, labelled with it."""

WARM_SECONDS = 300.0
"""The first estimate waits for a worker to import PyTorch."""


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run etcd, the API server, the controllers and the scheduler."""
    directory = tmp_path_factory.mktemp("control-plane")
    with control_plane(build(), directory=directory) as running:
        yield running


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> Iterator[ApiServer]:
    """Talk to the API server as a person's client does."""
    server = ApiServer(plane.credentials)
    yield server
    server.close()


@pytest.fixture(scope="session")
def core(plane: ControlPlane) -> Iterator[client.CoreV1Api]:
    """Talk to the API server with the official client."""
    with connected(plane.credentials) as made:
        yield made


@pytest.fixture(scope="session")
def nodes(core: client.CoreV1Api) -> tuple[GpuNode, ...]:
    """Create one node of 16 GiB cards and one of 40 GiB cards."""
    made = (T4, A100)
    for node in made:
        create(node, core)
    return made


@pytest.fixture(scope="session")
def namespaces(api: ApiServer, core: client.CoreV1Api) -> tuple[str, ...]:
    """Create one namespace a mode, and wait until pods can be made in them."""
    for mode in MODES:
        metadata = {"name": mode, "labels": {MODE_LABEL: mode}}
        answer = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        assert answer.status == 201, answer.message
    for mode in MODES:
        poll_until(
            partial(has_service_account, core, mode),
            what=f"the default service account of namespace {mode}",
        )
    return MODES


@pytest.fixture(scope="session")
def pytorchjobs(api: ApiServer) -> None:
    """Teach the API server the kind PyTorchJob, as training-operator defines it."""
    (document,) = TRAINING.definitions("PyTorchJob")
    answer = api.create(document)
    assert answer.status == 201, answer.message
    poll_until(lambda: is_established(api.get(document).body), what="the kind PyTorchJob")


@pytest.fixture(scope="session")
def webhook(
    plane: ControlPlane,
    api: ApiServer,
    nodes: tuple[GpuNode, ...],
    namespaces: tuple[str, ...],
    pytorchjobs: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Webhook]:
    """Run the webhook, registered with its CA bundle, called by the API server, and warm."""
    running = start_webhook(
        directory=tmp_path_factory.mktemp("webhook"),
        kubeconfig=plane.credentials.kubeconfig,
        authority=plane.authority,
    )
    try:
        for document in configurations(running.url, ca_bundle=plane.authority.pem):
            answer = api.create(document)
            assert answer.status == 201, answer.message
        poll_until(lambda: is_called(api), what="a first call of the webhook")
        warm(running, api)
        yield running
    finally:
        running.stop()


def has_service_account(core: client.CoreV1Api, namespace: str) -> bool:
    """Return whether pods can be made in *namespace*: they run as a service account."""
    return bool(core.list_namespaced_service_account(namespace).items)


def is_called(api: ApiServer) -> bool:
    """Return whether the API server has taken up the registration."""
    answer = api.create(unreadable_job("enforce", card=T4), dry_run=True)
    return answer.status == 403 or bool(answer.warnings)


def warm(webhook: Webhook, api: ApiServer) -> None:
    """Return once *webhook*, started just now, estimates and remembers what most tests ask."""
    for batch_size in (64, 256):
        poll_until(
            partial(is_estimated_in_time, webhook, api, batch_size),
            what=f"an estimate of batch size {batch_size}",
            seconds=WARM_SECONDS,
        )


def is_estimated_in_time(webhook: Webhook, api: ApiServer, batch_size: int) -> bool:
    """Return whether a review got its estimate before the deadline, as it does once warm."""
    before = webhook.num_reviews(verdict="unknown")
    api.create(resnet50_job("enforce", batch_size=batch_size, card=T4), dry_run=True)
    return webhook.num_reviews(verdict="unknown") == before


def is_established(definition: Mapping[str, Any]) -> bool:
    """Return whether the API server serves the kind that *definition* defines."""
    conditions = definition.get("status", {}).get("conditions") or ()  # null at first
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
