"""A cluster of its own for jobs that die: T4 and A10 nodes that kwok plays, the webhook, operators.

    control plane -> nodes -> webhook, the real JobSet controller and training-operator

What dies here is learnt for the whole cluster, so it is nobody else's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from kubernetes import client

from tests.e2e.cluster import ControlPlane, control_plane
from tests.e2e.conftest import has_service_account, is_established
from tests.e2e.connection import connected
from tests.e2e.controller.conftest import Start
from tests.e2e.controller.process import NAMESPACE, Controller
from tests.e2e.controlplane.build import build
from tests.e2e.kwok import build as kwok
from tests.e2e.kwok.player import DEATHS, STAGES, playing
from tests.e2e.nodes import A10, POOL, T4, GpuNode, create
from tests.e2e.operators.catalog import JOBSET, TRAINING
from tests.e2e.operators.running import running
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook import configurations
from tests.e2e.webhook_process import Webhook, start_webhook
from tests.e2e.workloads import resnet50_job

TEAM = "team"
PLAYED = "played"
SETTINGS = {"movePauseSeconds": 1}
NODES = tuple(
    replace(card, name=f"{card.name}-{number}", pool=PLAYED, count=64)
    for card in (T4, A10)
    for number in range(2)
)


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run a control plane."""
    with control_plane(build(), directory=tmp_path_factory.mktemp("deaths")) as running_plane:
        yield running_plane


@pytest.fixture(scope="package")
def api(plane: ControlPlane) -> Iterator[ApiServer]:
    """Talk to the API server as a person's client does."""
    server = ApiServer(plane.credentials)
    yield server
    server.close()


@pytest.fixture(scope="package")
def core(plane: ControlPlane) -> Iterator[client.CoreV1Api]:
    """Talk to the API server with the official client."""
    with connected(plane.credentials) as made:
        yield made


@pytest.fixture(scope="package")
def own_namespace(api: ApiServer, core: client.CoreV1Api) -> str:
    """Have the controller's namespace and one for jobs, which is only warned of."""
    for name, labels in ((NAMESPACE, {}), (TEAM, {"vramgate.dev/mode": "warn"})):
        metadata = {"name": name, "labels": labels}
        answer = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        assert answer.status == 201, answer.message
    poll_until(partial(has_service_account, core, TEAM), what="a default service account")
    return NAMESPACE


@pytest.fixture(scope="package")
def played_nodes(
    plane: ControlPlane, core: client.CoreV1Api, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[GpuNode, ...]]:
    """Have two nodes of each card, and kwok play their kubelets."""
    for node in NODES:
        create(node, core)
    with playing(
        kwok.build(),
        kubeconfig=plane.credentials.kubeconfig,
        selector=f"{POOL}={PLAYED}",
        directory=tmp_path_factory.mktemp("kwok"),
        stages=(STAGES, DEATHS),
    ):
        yield NODES


@pytest.fixture(scope="package")
def operators(
    plane: ControlPlane, api: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Run the JobSet controller and training-operator."""
    documents: list[dict[str, Any]] = [
        *JOBSET.definitions(),
        *TRAINING.definitions(),
    ]
    for document in documents:
        answer = api.create(document)
        assert answer.status == 201, answer.message
    for document in documents:
        poll_until(partial(_is_known, api, document), what=document["metadata"]["name"])
    with running((JOBSET, TRAINING), plane, api, directory=tmp_path_factory.mktemp("operators")):
        yield


def _is_known(api: ApiServer, definition: Mapping[str, Any]) -> bool:
    return is_established(api.get(definition).body)


@pytest.fixture(scope="package")
def webhook(
    plane: ControlPlane,
    api: ApiServer,
    played_nodes: tuple[GpuNode, ...],
    own_namespace: str,
    operators: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Webhook]:
    """Run the webhook, registered and warm for the one spec that all jobs here have."""
    running_webhook = start_webhook(
        directory=tmp_path_factory.mktemp("webhook"),
        kubeconfig=plane.credentials.kubeconfig,
        authority=plane.authority,
    )
    try:
        for document in configurations(running_webhook.url, ca_bundle=plane.authority.pem):
            answer = api.create(document)
            assert answer.status == 201, answer.message
        poll_until(partial(_is_estimated, api), what="an estimate in time", seconds=300)
        yield running_webhook
    finally:
        running_webhook.stop()


def _is_estimated(api: ApiServer) -> bool:
    answer = api.create(resnet50_job(TEAM, batch_size=64, card=T4), dry_run=True)
    annotations = answer.body.get("metadata", {}).get("annotations") or {}
    return annotations.get("vramgate.dev/verdict") == "fits"


@pytest.fixture(scope="package")
def controller(
    plane: ControlPlane,
    own_namespace: str,
    webhook: Webhook,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Controller]:
    """Run one controller for all tests that do not end theirs."""
    made = Controller(
        directory=tmp_path_factory.mktemp("controller"),
        kubeconfig=plane.credentials.kubeconfig,
        settings=SETTINGS,
    )
    made.start()
    yield made
    made.stop()


@pytest.fixture
def alone(controller: Controller) -> Iterator[None]:
    """Have the controller of the other tests away."""
    controller.stop()
    yield
    controller.start()


@pytest.fixture
def start_controller(
    plane: ControlPlane,
    own_namespace: str,
    webhook: Webhook,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Start]:
    """Start controllers by settings; all end with the test."""
    started: list[Controller] = []

    def start(policy: Mapping[str, Any] | None = None, **settings: Any) -> Controller:
        made = Controller(
            directory=tmp_path_factory.mktemp("controller"),
            kubeconfig=plane.credentials.kubeconfig,
            settings={**SETTINGS, **settings},
            policy=policy,
        )
        started.append(made)
        made.start()
        return made

    yield start
    for each in started:
        each.stop()
