"""helm's own install and upgrade, on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.chart.rendering import CHART, Document, Values, helm
from tests.e2e.cluster import ControlPlane
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e

RELEASE = "vramgate-released"
NAMESPACE = "released"
BUNDLE = "QUJD"
REGISTRATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def release(plane: ControlPlane, values: Values) -> str:
    """Return what helm tells who installs or upgrades."""
    where = ("--kubeconfig", str(plane.credentials.kubeconfig), "--namespace", NAMESPACE)
    argv = ("upgrade", "--install", RELEASE, str(CHART), "--create-namespace", *where)
    return helm(*argv, values=json.dumps(values))


def named(kind: str, name: str = RELEASE) -> Document:
    """Return what names an object of the release."""
    group = "apps" if kind == "Deployment" else "admissionregistration.k8s.io"
    version = "v1" if kind == "Secret" else f"{group}/v1"
    metadata = {"namespace": NAMESPACE, "name": name}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


@pytest.fixture(scope="module")
def told(plane: ControlPlane, api: ApiServer) -> Iterator[str]:
    """Install the chart, and return what helm says."""
    yield release(plane, {})
    for kind in REGISTRATIONS:
        api.delete(named(kind))


def test_install_says_what_to_do_next(told: str) -> None:
    """Try a job without creating it; then let a namespace enforce."""
    assert "kubectl create --dry-run=server -f JOB.yaml" in told
    assert "vramgate.dev/mode=enforce" in told
    assert "in mode warn" in told


@pytest.mark.usefixtures("told")
def test_upgrade_keeps_certificates_and_registrations(plane: ControlPlane, api: ApiServer) -> None:
    """What the webhook wrote is not the chart's to take away."""
    secret = named("Secret", f"{RELEASE}-certificates")
    assert api.patch(secret, {"data": {"tls.crt": BUNDLE}}).status == 200
    for kind in REGISTRATIONS:
        webhooks = api.get(named(kind)).body["webhooks"]
        for webhook in webhooks:
            webhook["clientConfig"]["caBundle"] = BUNDLE
        assert api.patch(named(kind), {"webhooks": webhooks}).status == 200

    release(plane, {"replicas": 3})

    assert api.get(named("Deployment")).body["spec"]["replicas"] == 3
    assert api.get(secret).body["data"] == {"tls.crt": BUNDLE}
    for kind in REGISTRATIONS:
        webhooks = api.get(named(kind)).body["webhooks"]
        assert {each["clientConfig"]["caBundle"] for each in webhooks} == {BUNDLE}
