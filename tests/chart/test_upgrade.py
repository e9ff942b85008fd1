"""helm's own upgrade of an earlier release, on a real API server, while jobs arrive.

Only the Service is another than the chart's: an alias of loopback, since there is no network to
pods. The process is the one that runs all the while: what is tried is what helm does to the
Secret and to the registrations.
"""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chart.installing import argv_of, kubeconfig_of, values
from tests.chart.rendering import (
    CHART,
    Document,
    RenderError,
    Values,
    helm,
    of_kind,
    parsed,
)
from tests.chart.samples import JOB, gpu_template
from tests.e2e.arrivals import Arrivals
from tests.e2e.cluster import ControlPlane
from tests.e2e.controlplane.build import KUBERNETES_VERSION
from tests.e2e.processes import answers, free_ports, poll_until, start, wait_until_ready
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e

RELEASE = "vramgate-upgraded"
NAMESPACE = "upgraded"
REGISTRATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
NUM_THREADS = 2

ALIAS = """\
apiVersion: v1
kind: Service
metadata:
  name: {{ include "vramgate.name" . }}
  namespace: {{ .Release.Namespace }}
spec:
  type: ExternalName
  externalName: localhost
  ports: [{name: https, port: {{ .Values.service.port }}}]
"""

EARLIER: Values = {
    "replicas": 1,
    "webhooks": {"timeoutSeconds": 4, "excludedNamespaces": ["kube-system"]},
    "resources": {"requests": {"memory": "1Gi"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release of the chart, and the ports that it is for."""

    plane: ControlPlane
    directory: Path
    ports: tuple[int, int]

    def write(self, version: str) -> Path:
        """Return a copy of the chart that calls itself *version*."""
        chart = self.directory / version
        shutil.copytree(CHART, chart)
        (chart / "templates" / "service.yaml").write_text(ALIAS)
        text = (chart / "Chart.yaml").read_text()
        current = next(line for line in text.splitlines() if line.startswith("version: "))
        (chart / "Chart.yaml").write_text(text.replace(current, f"version: {version}"))
        return chart

    def upgrade(self, version: str, changes: Values, *flags: str) -> tuple[Document, ...]:
        """Install *version*, or upgrade to it; return what it renders."""
        chart, namespace = str(self.write(version)), ("--namespace", NAMESPACE)
        given = json.dumps({**values(*self.ports), **changes})
        argv = ("upgrade", "--install", RELEASE, chart, *namespace, "--create-namespace", *flags)
        helm(*argv, "--kubeconfig", str(self.plane.credentials.kubeconfig), values=given)
        argv = ("template", RELEASE, chart, *namespace, "--kube-version", KUBERNETES_VERSION)
        return parsed(helm(*argv, values=given))


@pytest.fixture(scope="module")
def release(
    plane: ControlPlane, api: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Release]:
    """Install the earlier release, and run what it installs until reviews are answered."""
    directory = tmp_path_factory.mktemp("upgraded")
    ports = free_ports(2)
    made = Release(plane=plane, directory=directory, ports=(ports[0], ports[1]))
    found = made.upgrade("0.0.9", EARLIER)
    token = api.token(of_kind(found, "ServiceAccount"))
    argv = argv_of(found, directory=directory)
    argv += ["--kubeconfig", str(kubeconfig_of(plane, token, directory=directory))]
    server = start("vramgate", argv, directory=directory)
    try:
        wait_until_ready(server, lambda: answers(f"http://127.0.0.1:{ports[1]}/readyz"))
        poll_until(lambda: is_reviewed(api), what="a first review")
        yield made
    finally:
        server.stop()
        for kind in REGISTRATIONS:
            api.delete(of_kind(found, kind))


def test_upgrade_loses_no_review(plane: ControlPlane, api: ApiServer, release: Release) -> None:
    """The Secret and every CA bundle stay as the webhook wrote them."""
    certificates = stored(api)

    with Arrivals(plane, JOB.made(gpu_template()), num_threads=NUM_THREADS) as arrivals:
        arrivals.wait_for(5 * NUM_THREADS)
        release.upgrade("0.1.0", {})
        arrivals.wait_for(5 * NUM_THREADS)

    unreviewed = [each for each in arrivals.all if not each.is_reviewed]
    print(f"\n{len(arrivals.all)} jobs during an upgrade, {len(unreviewed)} of them not reviewed")
    assert unreviewed == []
    assert stored(api) == certificates
    assert bundles(api) == {certificates["ca.crt"]}
    assert timeouts(api) == {5}


def test_forced_upgrade_is_mended_by_the_webhook(
    plane: ControlPlane, api: ApiServer, release: Release
) -> None:
    """`--force` empties the Secret and every CA bundle: all is written again, no job fails."""
    before = authority(api)
    with Arrivals(plane, JOB.made(gpu_template()), num_threads=NUM_THREADS) as arrivals:
        arrivals.wait_for(5 * NUM_THREADS)
        _force(release)
        forced = time.monotonic()
        poll_until(lambda: is_mended(api), what="the Secret and every CA bundle", seconds=20)
        poll_until(lambda: authority(api) != before, what="the new CA", seconds=20)
        mended = time.monotonic()
        arrivals.wait_until(lambda each: each.is_reviewed, what="a review after it")
        trusted = time.monotonic()
        arrivals.wait_for(10 * NUM_THREADS)

    unreviewed = [each for each in arrivals.all if not each.is_reviewed]
    gap = max((e.answered for e in unreviewed), default=0) - min(
        (e.sent for e in unreviewed), default=0
    )
    print(
        f"\n{len(arrivals.all)} jobs during a forced upgrade, {len(unreviewed)} of them not"
        f" reviewed, within {gap:.2f} s; all was back {mended - forced:.2f} s after helm ended"
    )
    assert {each.status for each in arrivals.all} == {201}
    assert timeouts(api) == {6}
    assert authority(api).endswith(before)
    assert all(each.is_reviewed for each in arrivals.since(trusted))


def _force(release: Release) -> None:
    """Upgrade with `--force`, again where the webhook mended an object under helm's hands.

    helm replaces what it has read a moment before, and gives up if somebody wrote in between.
    """
    for _ in range(5):
        try:
            release.upgrade("0.1.1", {"webhooks": {"timeoutSeconds": 6}}, "--force")
        except RenderError as error:
            if "object has been modified" not in str(error):
                raise
        else:
            return
    raise AssertionError("five upgrades met a write of the webhook")


def stored(api: ApiServer) -> Document:
    """Return what the Secret holds."""
    secret = named("Secret", f"{RELEASE}-certificates")
    return dict(api.get(secret).body.get("data") or {})


def authority(api: ApiServer) -> bytes:
    """Return the CA of the Secret, and those before it that are trusted still (PEM)."""
    return base64.b64decode(stored(api).get("ca.crt", ""))


def bundles(api: ApiServer) -> set[str]:
    """Return the different CA bundles of the registrations; empty text where there is none."""
    return {
        webhook["clientConfig"].get("caBundle", "")
        for kind in REGISTRATIONS
        for webhook in api.get(named(kind)).body["webhooks"]
    }


def timeouts(api: ApiServer) -> set[int]:
    """Return how long the API server waits for an answer, by the registrations."""
    return {
        webhook["timeoutSeconds"]
        for kind in REGISTRATIONS
        for webhook in api.get(named(kind)).body["webhooks"]
    }


def is_mended(api: ApiServer) -> bool:
    """Return whether the Secret holds a certificate, and every registration its CA."""
    data = stored(api)
    return {"ca.crt", "tls.crt", "tls.key"} <= data.keys() and bundles(api) == {data["ca.crt"]}


def is_reviewed(api: ApiServer) -> bool:
    """Return whether a job is told what the webhook thinks of it."""
    return bool(api.create(JOB.made(gpu_template()), dry_run=True).warnings)


def named(kind: str, name: str = RELEASE) -> Document:
    """Return what names an object of the release."""
    version = "v1" if kind == "Secret" else "admissionregistration.k8s.io/v1"
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"namespace": NAMESPACE, "name": name},
    }
