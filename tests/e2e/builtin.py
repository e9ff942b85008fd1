"""A webhook that has no certificate but what it makes itself, with no more rights than it needs.

    control plane -> Service, registrations, roles -> replicas called by their Service's name

The Service is an alias of loopback: the API server checks the certificate for the Service's name.
"""

from __future__ import annotations

import base64
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client

from tests.e2e.cluster import Credentials
from tests.e2e.processes import Server, answers, fetch, free_ports, start
from tests.e2e.rest import ApiServer

NAMESPACE = "certificates"
NAME = "vramgate-builtin"
SECRET: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"namespace": NAMESPACE, "name": "vramgate-certificates"},
}
SERVER_NAME = f"{NAME}.{NAMESPACE}.svc"
PROPAGATION_SECONDS = 2.0
KINDS = {"ValidatingWebhookConfiguration": "/validate", "MutatingWebhookConfiguration": "/mutate"}
FOLLOWED = ["get", "list", "watch", "patch"]


def service(port: int) -> dict[str, Any]:
    """Return a Service whose name leads to loopback."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": NAMESPACE, "name": NAME},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }


def registration(kind: str, *, port: int) -> dict[str, Any]:
    """Return a registration for the jobs of our namespace, which fail if nobody answers."""
    place = {"namespace": NAMESPACE, "name": NAME, "path": KINDS[kind], "port": port}
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": NAME},
        "webhooks": [
            {
                "name": "jobs.vramgate.dev",
                "clientConfig": {"service": place},
                "rules": [{**rule, "operations": ["CREATE"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 10,
            }
        ],
    }


def roles() -> tuple[dict[str, Any], ...]:
    """Return the rights of built-in certificates, and of reading nodes: nothing else."""
    group = "rbac.authorization.k8s.io"
    secret = {"apiGroups": [""], "resources": ["secrets"]}
    configurations = [f"{kind.lower()}s" for kind in KINDS]
    rules = {
        "Role": [
            # A right to create cannot be bound to a name.
            {**secret, "verbs": ["create"]},
            {**secret, "verbs": FOLLOWED, "resourceNames": [SECRET["metadata"]["name"]]},
        ],
        "ClusterRole": [
            {"apiGroups": [""], "resources": ["nodes", "namespaces"], "verbs": ["list", "watch"]},
            {
                "apiGroups": ["admissionregistration.k8s.io"],
                "resources": configurations,
                "resourceNames": [NAME],
                "verbs": FOLLOWED,
            },
        ],
    }
    subject = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": NAME}
    made: list[dict[str, Any]] = []
    for kind, granted in rules.items():
        metadata = {"namespace": NAMESPACE, "name": NAME} if kind == "Role" else {"name": NAME}
        head = {"apiVersion": f"{group}/v1", "metadata": metadata}
        reference = {"apiGroup": group, "kind": kind, "name": NAME}
        made.append({**head, "kind": kind, "rules": granted})
        made.append({**head, "kind": f"{kind}Binding", "roleRef": reference, "subjects": [subject]})
    return tuple(made)


def service_account() -> dict[str, Any]:
    """Return whom the replicas talk to the API server as."""
    metadata = {"namespace": NAMESPACE, "name": NAME}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def write_kubeconfig(
    path: Path, *, credentials: Credentials, core: client.CoreV1Api, port: int | None = None
) -> None:
    """Write the kubeconfig of the service account: a token with its rights and no others.

    *port* is another way to the API server.
    """
    body = {"spec": {"expirationSeconds": 3600}}
    token = core.create_namespaced_service_account_token(NAME, NAMESPACE, body).status.token
    document = yaml.safe_load(credentials.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    if port is not None:
        document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    path.write_text(yaml.safe_dump(document))


class Replica:
    """One process of `vramgate serve` with built-in certificates."""

    def __init__(self, name: str, *, directory: Path, kubeconfig: Path) -> None:
        self.name = name
        self._directory = directory
        self._kubeconfig = kubeconfig
        self.port = free_ports(1)[0]
        self.server: Server | None = None

    def start(self) -> None:
        """Start the process; it is not waited for."""
        path = self._directory / f"{self.name}.yaml"
        path.write_text(yaml.safe_dump(settings(self.port)))
        argv = [sys.executable, "-m", "admission", "serve", "--config", str(path)]
        argv += ["--kubeconfig", str(self._kubeconfig)]
        self.server = start(self.name, argv, directory=self._directory)

    def stop(self) -> None:
        """Stop the process."""
        if self.server is not None:
            self.server.stop()

    @property
    def is_ready(self) -> bool:
        """Return whether it says so; a probe checks no certificate."""
        return answers(f"{self._base}/readyz")

    @property
    def is_alive(self) -> bool:
        """Return whether it answers at all."""
        return answers(f"{self._base}/healthz")

    def metrics(self) -> str:
        """Return the text of `/metrics`."""
        return fetch(f"{self._base}/metrics").decode()

    def num_problems(self, problem: str) -> int:
        """Return whether `/metrics` shows a *problem*."""
        text = self.metrics()
        (line,) = (
            line
            for line in text.splitlines()
            if line.startswith(f'vramgate_certificate_problems{{problem="{problem}"}}')
        )
        return int(float(line.split()[-1]))

    def served(self) -> bytes:
        """Return the certificate (PEM) that the next client gets."""
        return ssl.get_server_certificate(("127.0.0.1", self.port)).encode()

    def log(self) -> str:
        """Return all that was logged."""
        assert self.server is not None
        return self.server.log.read_text()

    @property
    def _base(self) -> str:
        return f"https://127.0.0.1:{self.port}"


def settings(port: int) -> dict[str, Any]:
    """Return the settings file: nothing of a certificate is given but where it belongs."""
    return {
        "server": {"host": "127.0.0.1", "port": port, "drainSeconds": 0},
        "certificates": {
            "secret": {"namespace": NAMESPACE, "name": SECRET["metadata"]["name"]},
            "service": {"namespace": NAMESPACE, "name": NAME},
            "webhooks": [NAME],
            "propagationSeconds": PROPAGATION_SECONDS,
        },
        "workers": {"preload": []},
    }


def stored(api: ApiServer, key: str) -> bytes:
    """Return what the Secret has under *key*; empty while it is not there."""
    return base64.b64decode((api.get(SECRET).body.get("data") or {}).get(key, ""))


def bundles(api: ApiServer, *, port: int) -> set[bytes]:
    """Return the different `caBundle`s that the API server has of us."""
    return {
        base64.b64decode(webhook["clientConfig"].get("caBundle", ""))
        for kind in KINDS
        for webhook in api.get(registration(kind, port=port)).body["webhooks"]
    }
