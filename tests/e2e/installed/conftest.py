"""An empty cluster for helm to install into: nodes of two sorts, and a network to pods.

    control plane with what Deployments need -> two nodes by the test kubelet, five by kwok

A cluster of its own: what the other tests run and register would have its say here too.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from tests.e2e.arrivals import Arrivals
from tests.e2e.cluster import Additions, ControlPlane, control_plane
from tests.e2e.conftest import MODE_LABEL, MODES, has_service_account
from tests.e2e.connection import connected
from tests.e2e.controlplane.build import build
from tests.e2e.installed.release import SYSTEM, Release
from tests.e2e.kubelet import inside
from tests.e2e.kubelet.environment import Image
from tests.e2e.kubelet.kubelet import Kubelet
from tests.e2e.kubelet.network import CONTROLLERS, PodNetwork
from tests.e2e.kwok import build as kwok
from tests.e2e.kwok.player import playing
from tests.e2e.nodes import A10, A100, POOL, T4, GpuNode, create
from tests.e2e.processes import free_ports, poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.workloads import resnet50_job

IMAGES = {"vramgate": Image((sys.executable, str(Path(inside.__file__)), "admission"))}
"""What the Dockerfile makes of this tree: the command `vramgate`."""

SMALL, MEDIUM, LARGE = 64, 192, 256
"""Batch sizes: for 16 GiB; too large for that and well within 24; too large for 24."""
NUM_THREADS = 12
"""The API server keeps a connection for each request at a time, and each goes to either replica."""
WARM_SECONDS = 300.0

CARDS = "cards"
"""The pool of the GPU nodes, and what kwok knows its nodes by."""

NODES = tuple(
    dataclasses.replace(card, name=f"{card.name}-{number}", pool=CARDS, count=1)
    for card, count in ((T4, 2), (A10, 2), (A100, 1))
    for number in range(count)
)


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run a control plane that makes pods of Deployments and calls Services."""
    with PodNetwork() as network:
        additions = Additions(controllers=CONTROLLERS, apiserver_flags=network.apiserver_flags)
        directory = tmp_path_factory.mktemp("empty")
        with control_plane(build(), directory=directory, additions=additions) as running:
            yield running


@pytest.fixture(scope="package")
def api(plane: ControlPlane) -> Iterator[ApiServer]:
    """Talk to the API server as a person's client does."""
    server = ApiServer(plane.credentials)
    yield server
    server.close()


@pytest.fixture(scope="package")
def core(plane: ControlPlane) -> Iterator[client.CoreV1Api]:
    """Talk to the API server with the official client."""
    with connected(plane.credentials) as made:
        yield made


@pytest.fixture(scope="package")
def kubelets(
    core: client.CoreV1Api, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Kubelet, ...]]:
    """Run two nodes for pods like Vramgate's."""
    directory = tmp_path_factory.mktemp("kubelets")
    with ExitStack() as stack:
        yield tuple(
            stack.enter_context(
                Kubelet(
                    f"system-{number}",
                    number=number,
                    core=core,
                    images=IMAGES,
                    directory=directory / str(number),
                    labels=SYSTEM,
                )
            )
            for number in (1, 2)
        )


@pytest.fixture(scope="package")
def gpu_nodes(
    plane: ControlPlane, core: client.CoreV1Api, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[GpuNode, ...]]:
    """Have nodes with a card each, and kwok play their kubelets."""
    for node in NODES:
        create(node, core)
    with playing(
        kwok.build(),
        kubeconfig=plane.credentials.kubeconfig,
        selector=f"{POOL}={CARDS}",
        directory=tmp_path_factory.mktemp("kwok"),
    ):
        yield NODES


@pytest.fixture(scope="package")
def release(plane: ControlPlane, core: client.CoreV1Api, kubelets: tuple[Kubelet, ...]) -> Release:
    """Return a release that is still to be installed."""
    ports = free_ports(2)
    return Release(kubeconfig=plane.credentials.kubeconfig, core=core, ports=(ports[0], ports[1]))


@pytest.fixture(scope="package")
def installed(release: Release) -> Release:
    """Install the chart with the settings it has by itself, into a cluster that is empty."""
    began = time.monotonic()
    release.upgrade({})
    print(f"\nhelm install --wait: {time.monotonic() - began:.1f} s")
    return release


@pytest.fixture(scope="package")
def namespaces(api: ApiServer, core: client.CoreV1Api) -> tuple[str, ...]:
    """Create one namespace a mode, and wait until pods can be made in them."""
    for mode in MODES:
        metadata = {"name": mode, "labels": {MODE_LABEL: mode}}
        answer = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        assert answer.status == 201, answer.message
    for mode in MODES:
        poll_until(partial(has_service_account, core, mode), what=f"an account in {mode}")
    return MODES


@pytest.fixture(scope="package")
def warm(
    plane: ControlPlane,
    installed: Release,
    gpu_nodes: tuple[GpuNode, ...],
    namespaces: tuple[str, ...],
) -> None:
    """Have every replica remember what the tests ask."""
    poll_until(partial(have_workers, installed), what="workers", seconds=WARM_SECONDS)
    for batch_size in (SMALL, MEDIUM, LARGE):
        job = job_in_pool(batch_size)
        before = [num_known(installed, pod) for pod in installed.pods()]
        with Arrivals(plane, job, num_threads=NUM_THREADS):
            poll_until(
                partial(know_more, installed, before),
                what=f"an estimate of batch size {batch_size} by every replica",
            )


def job_in_pool(batch_size: int) -> dict[str, Any]:
    """Return a Job that may go to every GPU node."""
    job = resnet50_job("enforce", batch_size=batch_size, card=T4)
    job["spec"]["template"]["spec"]["nodeSelector"] = {POOL: CARDS}
    return job


def know_more(release: Release, before: Sequence[int]) -> bool:
    """Return whether each replica could estimate a job since it had *before*."""
    pods = release.pods()
    return all(num_known(release, pod) > number for pod, number in zip(pods, before, strict=True))


def num_known(release: Release, pod: client.V1Pod) -> int:
    """Return how many reviews of jobs that could be estimated a pod has answered."""
    return release.num_reviews(pod, "fits", "tight", "oom")


def have_workers(release: Release) -> bool:
    """Return whether each replica has a framework loaded to estimate with."""
    return all(release.num_workers(pod, state="idle-template") > 0 for pod in release.pods())
