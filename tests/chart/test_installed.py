"""The installed chart on a real API server: certificates made, webhooks trusted, a job reviewed.

Everything is what the chart renders, run by the service account with its rights. Only the Service
is another: an alias of loopback, since there is no network to pods.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chart.installing import argv_of, kubeconfig_of, values
from tests.chart.rendering import Document, documents, of_kind
from tests.chart.samples import JOB, cpu_template, gpu_template
from tests.e2e.cluster import ControlPlane
from tests.e2e.processes import Server, answers, free_ports, poll_until, start, wait_until_ready
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e


def alias(service: Document) -> Document:
    """Return *service* as another name of loopback, at the same port."""
    ports = [{"name": each["name"], "port": each["port"]} for each in service["spec"]["ports"]]
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": ports}
    return {**service, "spec": spec}


@pytest.fixture(scope="module")
def installed(
    plane: ControlPlane, api: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Document, ...]]:
    """Create what the chart renders, and run its container's command until it is ready."""
    directory = tmp_path_factory.mktemp("installed")
    port, metrics_port = free_ports(2)
    found = documents(values(port, metrics_port), release="installed")
    for document in found:
        made = alias(document) if document["kind"] == "Service" else document
        answer = api.create(made)
        assert answer.status == 201, answer.message
    token = api.token(of_kind(found, "ServiceAccount"))
    argv = argv_of(found, directory=directory)
    argv += ["--kubeconfig", str(kubeconfig_of(plane, token, directory=directory))]
    server: Server = start("vramgate", argv, directory=directory)
    try:
        wait_until_ready(server, lambda: answers(f"http://127.0.0.1:{metrics_port}/readyz"))
        yield found
    finally:
        server.stop()
        for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
            api.delete(of_kind(found, kind))


def test_installed_chart_fills_its_secret_and_every_ca_bundle(
    api: ApiServer, installed: tuple[Document, ...]
) -> None:
    """With no more rights than the chart gives, and in the Secret that the chart made empty."""
    secret = api.get(of_kind(installed, "Secret")).body["data"]

    assert {"tls.crt", "tls.key", "ca.crt"} <= secret.keys()
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        webhooks = api.get(of_kind(installed, kind)).body["webhooks"]
        assert {each["clientConfig"]["caBundle"] for each in webhooks} == {secret["ca.crt"]}


@pytest.mark.usefixtures("installed")
def test_installed_chart_answers_for_a_gpu_job_and_not_for_another(api: ApiServer) -> None:
    """The API server reaches it by the Service's name and trusts what it presents."""

    def warnings(pod: Document) -> tuple[str, ...]:
        answer = api.create(JOB.made(pod), dry_run=True)
        assert answer.status == 201, answer.message
        return answer.warnings

    poll_until(lambda: bool(warnings(gpu_template())), what="a first warning of the webhook")
    assert all(each.startswith("vramgate: ") for each in warnings(gpu_template()))
    assert warnings(cpu_template()) == ()


def test_emptied_secret_is_filled_with_a_new_ca(
    api: ApiServer, installed: tuple[Document, ...]
) -> None:
    """How to ask for one: the chart gives no right to make a Secret that was deleted."""
    secret = of_kind(installed, "Secret")
    before = api.get(secret).body["data"]["ca.crt"]

    assert api.patch(secret, {"data": None}).status == 200

    poll_until(
        lambda: api.get(secret).body.get("data", {}).get("ca.crt", before) != before,
        what="a new CA in the Secret",
    )
