"""The chart with cert-manager's certificates, against its own kinds and on a real API server."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from admission.certificates.issuing import new_authority
from tests.chart.cert_manager import REGISTRATIONS, CertManager, mount
from tests.chart.installing import SETTINGS, argv_of, kubeconfig_of, values
from tests.chart.rendering import (
    NAMESPACE,
    Document,
    Values,
    all_of_kind,
    documents,
    of_kind,
)
from tests.chart.samples import JOB, gpu_template
from tests.chart.test_installed import alias
from tests.e2e.cluster import ControlPlane
from tests.e2e.processes import Server, answers, free_ports, poll_until, start, wait_until_ready
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e

MODE: Values = {"mode": "certManager"}
ISSUER = {"kind": "ClusterIssuer", "name": "company", "group": "cert-manager.io"}


@pytest.mark.parametrize("settings", [{}, {"issuerRef": ISSUER, "duration": "2160h"}])
def test_objects_are_what_cert_manager_takes(api: ApiServer, settings: Values) -> None:
    """By its own schemas, strictly."""
    found = documents({"certificates": {**MODE, "certManager": settings}}, release="managed")
    made = [each for each in found if each["apiVersion"].startswith("cert-manager.io/")]

    for document in made:
        answer = api.create(document, dry_run=True, strict=True)
        assert (answer.status, answer.warnings) == (201, ()), answer.message
    wrong = {**made[-1], "spec": {**made[-1]["spec"], "lifetime": "1h"}}
    assert api.create(wrong, dry_run=True, strict=True).status == 400


def test_leaf_comes_of_a_ca_that_outlives_it() -> None:
    """Self-signed, CA, leaf: a renewed leaf changes nothing of what the API server trusts."""
    found = documents({"certificates": MODE})
    issuers = {each["metadata"]["name"]: each["spec"] for each in all_of_kind(found, "Issuer")}
    certificates = {
        each["metadata"]["name"]: each["spec"] for each in all_of_kind(found, "Certificate")
    }
    leaf = certificates["vramgate"]
    authority = certificates["vramgate-ca"]

    assert issuers[leaf["issuerRef"]["name"]] == {"ca": {"secretName": authority["secretName"]}}
    assert issuers[authority["issuerRef"]["name"]] == {"selfSigned": {}}
    assert authority["isCA"]
    assert authority["privateKey"]["rotationPolicy"] == "Never"
    hours = [
        int(each[key].rstrip("h"))
        for each in (authority, leaf)
        for key in ("renewBefore", "duration")
    ]
    assert hours[0] > hours[3]
    assert hours[1] > hours[3] > hours[2]
    pod = of_kind(found, "Deployment")["spec"]["template"]["spec"]
    mounted = [each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each]
    assert mounted == [leaf["secretName"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A release with mounted certificates, and its process."""

    found: tuple[Document, ...]
    manager: CertManager
    files: Path
    port: int
    server: Server

    @property
    def certificate(self) -> Document:
        """Return the Certificate of the server."""
        (leaf,) = (
            each for each in all_of_kind(self.found, "Certificate") if "dnsNames" in each["spec"]
        )
        return leaf

    def served(self) -> str:
        """Return the certificate (PEM) that the next client gets."""
        return ssl.get_server_certificate(("127.0.0.1", self.port))


@pytest.fixture(scope="module")
def installed(
    plane: ControlPlane, api: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """Create what the chart renders, issue and inject, and run the container's command."""
    directory = tmp_path_factory.mktemp("managed")
    port, metrics_port = free_ports(2)
    found = documents({**values(port, metrics_port), "certificates": MODE}, release="managed")
    for document in found:
        answer = api.create(alias(document) if document["kind"] == "Service" else document)
        assert answer.status == 201, answer.message
    manager = CertManager(api, new_authority("cert-manager"))
    files = directory / "tls"
    token = api.token(of_kind(found, "ServiceAccount"))
    argv = argv_of(found, directory=directory)
    argv += ["--kubeconfig", str(kubeconfig_of(plane, token, directory=directory))]
    place_files(directory / Path(SETTINGS).name, files)
    (leaf,) = (each for each in all_of_kind(found, "Certificate") if "dnsNames" in each["spec"])
    mount(manager.issue(leaf), files)
    assert manager.inject(found) == len(REGISTRATIONS)
    server = start("vramgate", argv, directory=directory)
    try:
        wait_until_ready(server, lambda: answers(f"http://127.0.0.1:{metrics_port}/readyz"))
        yield Installed(found=found, manager=manager, files=files, port=port, server=server)
    finally:
        server.stop()
        for kind in REGISTRATIONS:
            api.delete(of_kind(found, kind))


def place_files(path: Path, files: Path) -> None:
    """Let the settings at *path* name the files where they are here."""
    document = yaml.safe_load(path.read_text())
    document["server"] |= {"certFile": f"{files}/tls.crt", "keyFile": f"{files}/tls.key"}
    path.write_text(yaml.safe_dump(document))


@pytest.mark.usefixtures("installed")
def test_api_server_trusts_what_cert_manager_injected(api: ApiServer) -> None:
    """Through the Service's name, with the CA of the annotated Certificate."""
    poll_until(lambda: is_reviewed(api), what="a first warning of the webhook")


def test_renewed_certificate_is_served_without_a_restart(
    api: ApiServer, installed: Installed
) -> None:
    """The Secret changes, the kubelet swaps the files, the next client gets the new one."""
    before = installed.served()

    renewed = installed.manager.issue(installed.certificate)
    mount(renewed, installed.files)

    poll_until(
        lambda: installed.served().encode() == renewed.certificate, what="the new certificate"
    )
    assert installed.served() != before
    poll_until(lambda: is_reviewed(api), what="a review")
    assert "restart" not in installed.server.log.read_text()


def test_nobody_but_cert_manager_needs_rights_on_secrets(api: ApiServer) -> None:
    """The process reads files: its account may read no Secret and change no registration."""
    found = documents({"certificates": MODE}, release="managed")

    (role,) = all_of_kind(found, "ClusterRole")
    resources = {name for rule in role["rules"] for name in rule["resources"]}

    assert not resources & {"secrets", "validatingwebhookconfigurations"}
    (own,) = all_of_kind(found, "Role")
    assert [rule["resources"] for rule in own["rules"]] == [["configmaps"]]
    assert NAMESPACE in of_kind(found, "ClusterRoleBinding")["subjects"][0]["namespace"]


def is_reviewed(api: ApiServer) -> bool:
    """Return whether the API server calls the webhook and believes it."""
    return bool(api.create(JOB.made(gpu_template()), dry_run=True).warnings)
