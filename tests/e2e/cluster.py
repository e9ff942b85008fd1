"""Run a Kubernetes control plane on loopback for the length of a test run.

    four binaries, a folder -> ControlPlane (its servers run) -> nothing left

There is no kubelet: nodes are objects made by `nodes.py` and pods stop at "scheduled".
Never listens beyond 127.0.0.1.
"""

from __future__ import annotations

import base64
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from tests.e2e.certificates import Authority, KeyPair, authority, service_account_keys
from tests.e2e.processes import (
    Restartable,
    answers,
    free_ports,
    retrying_ports,
    start_ready,
)

# No node-lifecycle controller: nodes without a kubelet would be tainted and their pods evicted.
CONTROLLERS = (
    "job-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "namespace-controller",
    "garbage-collector-controller",
    "root-ca-certificate-publisher-controller",
    "ttl-after-finished-controller",
    "disruption-controller",
    "cronjob-controller",
)

ISSUER = "https://kubernetes.default.svc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """What one test's control plane has beyond that of the others."""

    controllers: tuple[str, ...] = ()
    apiserver_flags: tuple[str, ...] = ()


NO_ADDITIONS = Additions()


@dataclass(frozen=True, slots=True)
class Ports:
    """One loopback port a listener."""

    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a client needs to talk to the API server as an administrator."""

    url: str
    token: str
    authority: Path
    tokens: Path
    kubeconfig: Path


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running control plane."""

    ports: Ports
    authority: Authority
    credentials: Credentials
    apiserver: Restartable


@contextmanager
def control_plane(
    binaries: Path, *, directory: Path, additions: Additions = NO_ADDITIONS
) -> Iterator[ControlPlane]:
    """Run the servers of *binaries* in *directory*; leaves nothing running, the logs stay.

    Raises:
        ServerError: if one does not come up; the message ends with its log.
    """
    directory.mkdir(parents=True, exist_ok=True)
    plane, started = retrying_ports(lambda: _start(binaries, directory, additions))
    with started:
        yield plane


def _start(binaries: Path, directory: Path, additions: Additions) -> tuple[ControlPlane, ExitStack]:
    """Return a ready control plane and what stops it; nothing runs if this raises."""
    with ExitStack() as stack:
        plane = _start_servers(binaries, directory, stack, additions)
        return plane, stack.pop_all()


def _start_servers(
    binaries: Path, directory: Path, stack: ExitStack, additions: Additions
) -> ControlPlane:
    """Start one server after another: each needs the one before it."""
    ports = Ports(*free_ports(5))
    trusted = authority(directory)
    accounts = service_account_keys(directory)
    serving = trusted.issue("kube-apiserver", directory=directory)
    credentials = _write_credentials(directory, ports=ports, trusted=trusted)
    data = directory / "etcd-data"
    stack.callback(shutil.rmtree, data, ignore_errors=True)

    def run(name: str, flags: Sequence[str], is_ready: Callable[[], bool]) -> Restartable:
        argv = [str(binaries / name), *flags]
        server = Restartable(
            partial(start_ready, name, argv, directory=directory, is_ready=is_ready)
        )
        stack.callback(server.stop)
        return server

    run(
        "etcd",
        etcd_flags(ports, data=data),
        lambda: answers(f"http://127.0.0.1:{ports.etcd}/readyz"),
    )
    apiserver = run(
        "kube-apiserver",
        (
            *apiserver_flags(ports, tokens=credentials.tokens, accounts=accounts, serving=serving),
            *additions.apiserver_flags,
        ),
        lambda: answers(f"{credentials.url}/readyz", authority=trusted.path),
    )
    run(
        "kube-controller-manager",
        (
            *controller_manager_flags(
                ports, kubeconfig=credentials.kubeconfig, accounts=accounts, root=trusted.path
            ),
            f"--controllers={','.join((*CONTROLLERS, *additions.controllers))}",
        ),
        lambda: answers(f"https://127.0.0.1:{ports.controller_manager}/healthz"),
    )
    run(
        "kube-scheduler",
        scheduler_flags(ports, kubeconfig=credentials.kubeconfig),
        lambda: answers(f"https://127.0.0.1:{ports.scheduler}/readyz"),
    )
    return ControlPlane(ports, trusted, credentials, apiserver)


def _write_credentials(directory: Path, *, ports: Ports, trusted: Authority) -> Credentials:
    """Write the token file and the kubeconfig that servers, webhook and clients read."""
    credentials = Credentials(
        url=f"https://127.0.0.1:{ports.apiserver}",
        token=secrets.token_hex(16),
        authority=trusted.path,
        tokens=directory / "tokens.csv",
        kubeconfig=directory / "kubeconfig",
    )
    credentials.tokens.write_text(f'{credentials.token},admin,admin,"system:masters"\n')
    bundle = base64.b64encode(trusted.pem).decode()
    cluster = {"server": credentials.url, "certificate-authority-data": bundle}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": credentials.token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "admin"}}],
        "current-context": "e2e",
    }
    credentials.kubeconfig.write_text(yaml.safe_dump(document))
    return credentials


def etcd_flags(ports: Ports, *, data: Path) -> tuple[str, ...]:
    """Return etcd's flags: one member, and no fsync since the data is thrown away."""
    client = f"http://127.0.0.1:{ports.etcd}"
    peer = f"http://127.0.0.1:{ports.etcd_peer}"
    return (
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
    )


def apiserver_flags(
    ports: Ports, *, tokens: Path, accounts: KeyPair, serving: KeyPair
) -> tuple[str, ...]:
    """Return the API server's flags.

    TaintNodesByCondition is off: it taints every new node, and only the node-lifecycle
    controller, which does not run here, would take the taint away.
    """
    return (
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={accounts.public}",
        f"--service-account-signing-key-file={accounts.private}",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        f"--tls-cert-file={serving.public}",
        f"--tls-private-key-file={serving.private}",
        f"--secure-port={ports.apiserver}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        "--disable-admission-plugins=TaintNodesByCondition",
    )


def controller_manager_flags(
    ports: Ports, *, kubeconfig: Path, accounts: KeyPair, root: Path
) -> tuple[str, ...]:
    """Return the controller manager's flags, without the controllers it is to run."""
    return (
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={accounts.private}",
        f"--root-ca-file={root}",
        f"--secure-port={ports.controller_manager}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    )


def scheduler_flags(ports: Ports, *, kubeconfig: Path) -> tuple[str, ...]:
    """Return the scheduler's flags."""
    return (
        f"--kubeconfig={kubeconfig}",
        f"--secure-port={ports.scheduler}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    )
