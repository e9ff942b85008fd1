"""Share one control plane among the tests that ask a real API server.

binaries -> control plane -> kinds, namespaces -> the chart's webhooks, recorded
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.chart.definitions import definitions
from tests.chart.generating import INSTALL
from tests.chart.recorder import Recorder, recording
from tests.chart.rendering import NAMESPACE as RELEASE_NAMESPACE
from tests.chart.samples import JOB, NAMESPACE, gpu_template
from tests.e2e.cluster import ControlPlane, control_plane
from tests.e2e.controlplane.build import build
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook import configurations

IGNORED = "ignored"
"""A namespace that is labelled to be left alone."""


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run etcd, the API server, the controllers and the scheduler."""
    directory = tmp_path_factory.mktemp("control-plane")
    with control_plane(build(), directory=directory) as running:
        yield running


@pytest.fixture(scope="package")
def api(plane: ControlPlane) -> Iterator[ApiServer]:
    """Talk to the API server, which knows every kind and namespace of these tests."""
    server = ApiServer(plane.credentials)
    made = [_namespace(name) for name in (NAMESPACE, RELEASE_NAMESPACE)]
    made.append(_namespace(IGNORED, **{"vramgate.dev/webhook": "ignore"}))
    kinds = list(definitions())
    for document in (*made, *kinds):
        answer = server.create(document)
        assert answer.status == 201, answer.message
    for document in kinds:
        poll_until(partial(_is_established, server, document), what=document["metadata"]["name"])
    for document in made:
        poll_until(partial(_has_account, server, document), what="a default service account")
    yield server
    server.close()


@pytest.fixture(scope="package")
def recorder(plane: ControlPlane, api: ApiServer) -> Iterator[Recorder]:
    """Register the webhooks of deploy/install.yaml, all of them recorded and allowed."""
    directory = plane.credentials.kubeconfig.parent
    with recording(plane.authority.issue("recorder", directory=directory)) as running:
        for document in configurations(running.url, ca_bundle=plane.authority.pem, path=INSTALL):
            answer = api.create(document)
            assert answer.status == 201, answer.message
        paths = {"/validate CREATE", "/mutate CREATE"}
        poll_until(lambda: paths <= set(_probed(api, running)), what="a first call of both routes")
        yield running


@pytest.fixture
def sent(recorder: Recorder) -> Recorder:
    """Remember what is sent from here on."""
    recorder.forget()
    return recorder


def _probed(api: ApiServer, recorder: Recorder) -> list[str]:
    recorder.forget()
    api.create(JOB.made(gpu_template()), dry_run=True)
    return recorder.seen


def _namespace(name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _is_established(api: ApiServer, definition: dict[str, Any]) -> bool:
    conditions = api.get(definition).body.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _has_account(api: ApiServer, namespace: dict[str, Any]) -> bool:
    path = f"/api/v1/namespaces/{namespace['metadata']['name']}/serviceaccounts/default"
    return api.read(path).status == 200
