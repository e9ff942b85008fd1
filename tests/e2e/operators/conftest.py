"""Share controllers of other projects among the tests that meet them.

control plane, our webhook -> kinds, a namespace -> controllers, ready, with their own webhooks
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from kubernetes import client

from tests.e2e.cluster import ControlPlane
from tests.e2e.conftest import has_service_account, is_established
from tests.e2e.operators.catalog import OPERATORS
from tests.e2e.operators.made import NAMESPACE
from tests.e2e.operators.operator import Operator
from tests.e2e.operators.running import running
from tests.e2e.operators.trainjobs import runtime
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook_process import Webhook


@pytest.fixture(scope="package")
def kinds(api: ApiServer, webhook: Webhook) -> None:
    """Teach the API server the kinds of all five."""
    with ThreadPoolExecutor() as pool:
        found = [each for some in pool.map(_definitions, OPERATORS) for each in some]
    for document in found:
        answer = api.create(document)
        assert answer.status in (201, 409), answer.message  # other tests need some of them too
    for document in found:
        poll_until(partial(_is_known, api, document), what=document["metadata"]["name"])


def _is_known(api: ApiServer, definition: dict[str, Any]) -> bool:
    return is_established(api.get(definition).body)


def _definitions(operator: Operator) -> list[dict[str, Any]]:
    return list(operator.definitions())


@pytest.fixture(scope="package")
def _namespace(api: ApiServer, core: client.CoreV1Api) -> Iterator[None]:
    """Have a namespace for what they make, and give its GPUs back."""
    metadata = {"name": NAMESPACE, "labels": {"vramgate.dev/mode": "enforce"}}
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    assert api.create(document).status == 201
    poll_until(partial(has_service_account, core, NAMESPACE), what="a default service account")
    yield
    api.delete(document)
    poll_until(partial(_is_empty, core), what="the end of all pods")


def _is_empty(core: client.CoreV1Api) -> bool:
    """Delete what pods there are, which no kubelet does, and return whether there are none."""
    core.delete_collection_namespaced_pod(NAMESPACE, grace_period_seconds=0)
    return not core.list_namespaced_pod(NAMESPACE).items


@pytest.fixture(scope="package", autouse=True)
def operators(
    plane: ControlPlane,
    api: ApiServer,
    kinds: None,
    _namespace: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Run all five."""
    directory = tmp_path_factory.mktemp("operators")
    with running(OPERATORS, plane, api, directory=directory):
        answer = api.create(runtime())
        assert answer.status == 201, answer.message
        yield
