"""Share what tests of the controller need: its namespace, and folders for its processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.e2e.cluster import ControlPlane
from tests.e2e.controller.apart import Apart, apart
from tests.e2e.controller.process import NAMESPACE, Controller
from tests.e2e.rest import ApiServer

Start = Callable[..., Controller]


@pytest.fixture(scope="session")
def own_namespace(api: ApiServer) -> str:
    """Have the namespace that the controller's Lease is in."""
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    answer = api.create(document)
    assert answer.status in (201, 409), answer.message
    return NAMESPACE


@pytest.fixture
def start_controller(
    plane: ControlPlane, own_namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Start]:
    """Start controllers by settings, `start_controller(moves=["dead"])`; all end with the test."""
    started: list[Controller] = []

    def start(policy: Mapping[str, Any] | None = None, **settings: Any) -> Controller:
        made = Controller(
            directory=tmp_path_factory.mktemp("controller"),
            kubeconfig=plane.credentials.kubeconfig,
            settings=settings,
            policy=policy,
        )
        started.append(made)
        made.start()
        return made

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def alone(running_apart: Apart) -> Iterator[Apart]:
    """Have the cluster without a webhook, and leave no pod on its cards."""
    yield running_apart
    running_apart.clear()


@pytest.fixture(scope="package")
def running_apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    """Run a cluster without a webhook, for tests that create what a webhook would change."""
    with apart(tmp_path_factory.mktemp("apart")) as running:
        yield running


@pytest.fixture
def start_alone(alone: Apart, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start controllers there, as `start_controller` does."""
    started: list[Controller] = []

    def start(policy: Mapping[str, Any] | None = None, **settings: Any) -> Controller:
        made = Controller(
            directory=tmp_path_factory.mktemp("controller"),
            kubeconfig=alone.plane.credentials.kubeconfig,
            settings=settings,
            policy=policy,
        )
        started.append(made)
        made.start()
        return made

    yield start
    for each in started:
        each.stop()
