"""The chart as an operator installs it: helm, and pods that the real controllers make.

    values -> helm's install, upgrade and uninstall -> what is then in the cluster

Nothing of the chart is changed. Its values say only which ports of this machine are free, which
nodes are for pods like Vramgate's, and what a test is about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client

from tests.chart.rendering import CHART, NAMESPACE, RELEASE, helm
from tests.e2e.kubelet.network import on_loopback
from tests.e2e.processes import fetch

ROLE = "example.com/role"
"""The label of nodes that are not for GPU jobs."""
SYSTEM = {ROLE: "system"}

SAMPLE = re.compile(r"^(?P<name>\w+)(?P<labels>\{[^}]*\})? (?P<value>\S+)$", re.MULTILINE)
REGISTRATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release of the chart on one cluster."""

    kubeconfig: Path
    core: client.CoreV1Api
    ports: tuple[int, int]
    """Of reviews, and of metrics and probes."""

    def upgrade(self, config: Json, **values: Any) -> str:
        """Install the release or upgrade it, and return what helm prints once all is ready."""
        given = {
            "port": self.ports[0],
            "metricsPort": self.ports[1],
            "nodeSelector": SYSTEM,
            "config": config,
            **values,
        }
        argv = ("upgrade", "--install", RELEASE, str(CHART), "--create-namespace")
        return self._helm(*argv, "--wait", "--timeout=300s", values=given)

    def uninstall(self) -> str:
        """Take the release away, and return what helm prints once nothing of it is left."""
        return self._helm("uninstall", RELEASE, "--wait", "--timeout=60s")

    def pods(self) -> tuple[client.V1Pod, ...]:
        """Return the pods there are, those that are ending too."""
        return tuple(self.core.list_namespaced_pod(NAMESPACE).items)

    def metrics(self, pod: client.V1Pod) -> str:
        """Return the text of a pod's `/metrics`."""
        address = on_loopback(pod.status.pod_ip)
        return fetch(f"http://{address}:{self.ports[1]}/metrics").decode()

    def num_reviews(self, pod: client.V1Pod, *verdicts: str) -> int:
        """Return how many reviews a pod has answered with *verdicts*, or with any."""
        labels = [f'verdict="{verdict}"' for verdict in verdicts] or [""]
        return sum(self.metric("vramgate_reviews_total", pod, label=label) for label in labels)

    def num_workers(self, pod: client.V1Pod, *, state: str) -> int:
        """Return how many processes that estimate a pod has in *state*."""
        return self.metric("vramgate_estimator_workers", pod, label=f'state="{state}"')

    @property
    def secret(self) -> Json:
        """Return what names the Secret with the certificates."""
        return _named("v1", "Secret", f"{RELEASE}-certificates")

    def registration(self, kind: str) -> Json:
        """Return what names the webhook configuration of *kind*."""
        return _named("admissionregistration.k8s.io/v1", kind, RELEASE)

    def metric(self, name: str, pod: client.V1Pod, *, label: str = "") -> int:
        """Return the sum of a pod's samples called *name* that have *label*."""
        return sum(
            int(float(sample["value"]))
            for sample in SAMPLE.finditer(self.metrics(pod))
            if sample["name"] == name and label in (sample["labels"] or "")
        )

    def _helm(self, *argv: str, values: Json | None = None) -> str:
        given = ("--namespace", NAMESPACE, "--kubeconfig", str(self.kubeconfig))
        return helm(*argv, *given, values=None if values is None else json.dumps(values))


def _named(version: str, kind: str, name: str) -> Json:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"namespace": NAMESPACE, "name": name},
    }
