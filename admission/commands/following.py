"""What `serve` follows of the cluster: nodes, namespaces, and its certificates.

settings, client -> Inventory, Keeper; kept up to date until the block ends
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from admission import cluster
from admission.certificate_settings import CertificateMode
from admission.certificates.builtin import kept_certificates
from admission.certificates.keeper import Keeper
from admission.certificates.problems import Telling
from admission.config import Settings
from admission.errors import SettingsError
from admission.inventory import SECONDS_PER_DAY, Inventory, read_nodes
from admission.metrics import Metrics
from admission.outages import Outages
from admission.values import Json, NodeClass
from admission.watch import Watch
from estimator.errors import Problem

NAMESPACE = "POD_NAMESPACE"
"""The variable that the chart fills from the pod's namespace."""
DEFAULT_NAMESPACE = "vramgate-system"


def own_namespace() -> str:
    """Return the namespace that we run in: of what we keep."""
    return os.environ.get(NAMESPACE) or DEFAULT_NAMESPACE


def client_of(settings: Settings, kubeconfig: Path | None) -> cluster.Client | None:
    """Return a client of the cluster, or None if a nodes file is all there is."""
    if settings.nodes.file is not None and kubeconfig is None and not cluster.is_in_cluster():
        return None
    return cluster.connect(kubeconfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """What it takes to follow the cluster."""

    settings: Settings
    client: cluster.Client | None
    metrics: Metrics
    outages: Outages


async def keeper_of(following: Following, stack: contextlib.AsyncExitStack) -> Keeper | None:
    """Return who looks after built-in certificates until *stack* ends; None with files.

    Raises:
        SettingsError: if there is no cluster to keep them in.
    """
    settings = following.settings
    if settings.certificate_mode is CertificateMode.FILES:
        return None
    if following.client is None:
        raise SettingsError(
            [Problem(path="certificates.mode", message="builtin needs a cluster")],
            hint="give `--kubeconfig`, or `server.certFile` and `server.keyFile`",
        )
    kept = kept_certificates(
        following.client,
        settings.certificates,
        tell=Telling(
            problems=following.metrics.certificate_problems,
            injected=following.metrics.ca_bundle_injected,
        ),
        outages=following.outages,
    )
    return await stack.enter_async_context(kept)


@contextlib.asynccontextmanager
async def followed_inventory(
    settings: Settings,
    client: cluster.Client | None,
    *,
    changed: Callable[[tuple[NodeClass, ...]], None],
    outages: Outages,
) -> AsyncIterator[Inventory]:
    """Keep an inventory up to date from the nodes file, the API server, or both.

    With a nodes file alone there is no cluster to ask: no namespace says a mode of its own.
    """
    file = settings.nodes.file
    inventory = Inventory(
        keep_seconds=settings.nodes.keep_days * SECONDS_PER_DAY,
        namespaces_expected=client is not None,
        settings=settings.nodes,
        changed=changed,
    )
    if file is not None:
        inventory.set_nodes(await asyncio.to_thread(read_nodes, file))
        await inventory.refresh()
    watches = []
    if client is not None:
        if file is None:
            nodes = _on_loop(inventory.set_nodes)
            watches.append(Watch(client, cluster.NODES, nodes, outages=outages))
        namespaces = _on_loop(inventory.set_namespaces)
        watches.append(Watch(client, cluster.NAMESPACES, namespaces, outages=outages))
    task = asyncio.create_task(inventory.run())
    for watch in watches:
        watch.start()
    try:
        yield inventory
    finally:
        for watch in watches:
            watch.stop()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _on_loop(
    take: Callable[[Mapping[str, Json]], None],
) -> Callable[[Mapping[str, Json]], None]:
    """Return *take* for a thread: it runs on this loop, and not at all once that is closed."""
    loop = asyncio.get_running_loop()

    def publish(snapshot: Mapping[str, Json]) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(take, snapshot)

    return publish
