"""`vramgate serve`: the admission webhook.

    settings, kubeconfig -> inventory, workers, handler, server, until SIGTERM

Puts the parts together and holds no logic of its own. Imports no framework.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import structlog
import typer

from admission import cluster
from admission.certificate_settings import CertificateMode
from admission.certificates.builtin import kept_certificates
from admission.certificates.keeper import Keeper
from admission.commands.live import Live, retention_of
from admission.config import LogLevel, Settings, load_settings, package_version
from admission.detect import load_parts
from admission.errors import AdmissionError, SettingsError
from admission.estimates import EstimatePool
from admission.handler import Handler
from admission.inventory import SECONDS_PER_DAY, Inventory, read_nodes
from admission.logs import configure_logs
from admission.metrics import Metrics
from admission.reader import ReviewReader
from admission.server import Probes, WebhookServer
from admission.settings_file import SettingsFile
from admission.sources.fetching import Fetcher
from admission.sources.setup import fetcher_of
from admission.values import Json
from admission.workloads import KINDS
from admission.workloads.custom import with_custom
from estimator.errors import Problem
from estimator.workers.limits import Limits
from estimator.workers.pool import Workers

SWITCH_SECONDS = 0.001
"""How long the event loop waits for a thread that reads a review (the interpreter's default: 5 ms).
A review takes the lock some five times."""

_log = structlog.get_logger()


def command(
    config: Annotated[
        Path | None, typer.Option(help="Settings file (YAML). Without it every default holds.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="How to reach the API server, outside a cluster.")
    ] = None,
    log_level: Annotated[
        LogLevel | None, typer.Option(help="Instead of the level in the settings.")
    ] = None,
) -> None:
    """Answer admission reviews over HTTPS until SIGTERM."""
    settings = load_settings(config)
    configure_logs(log_level or settings.logs.level, form=settings.logs.format)
    try:
        asyncio.run(serve(settings, kubeconfig=kubeconfig, file=config, log_level=log_level))
    except AdmissionError:
        raise
    except Exception:
        _log.exception("server failed")
        raise


async def serve(
    settings: Settings,
    *,
    kubeconfig: Path | None,
    file: Path | None = None,
    log_level: LogLevel | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then answer what is in flight and return.

    *settings* are those of *file*, which is taken again when it changes.

    Raises:
        SettingsError: if the certificate, the nodes or a port cannot be had.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    _log.info("starting", version=package_version(), mode=settings.policy.mode.value)
    load_parts()
    metrics = Metrics()
    workers = Workers(
        Limits(
            wall_seconds=settings.workers.timeout_seconds,
            memory_bytes=settings.workers.memory_bytes,
        ),
        max_concurrent=settings.workers.max_concurrent,
        preload=settings.workers.preload,
    )
    pool = EstimatePool(
        workers,
        max_concurrent=workers.max_concurrent,
        retention=retention_of(settings),
        watcher=metrics,
    )
    async with contextlib.AsyncExitStack() as stack:
        client = await asyncio.to_thread(_client, settings, kubeconfig)
        inventory = await stack.enter_async_context(_inventory(settings, client, metrics))
        keeper = await _keeper(settings, client, metrics, stack)
        stack.push_async_callback(workers.close)
        stack.push_async_callback(pool.close)
        parts = _Parts(
            inventory=inventory,
            pool=pool,
            metrics=metrics,
            workers=workers,
            sources=fetcher_of(settings.sources, client=client),
            keeper=keeper,
        )
        handler = _handler(settings, parts)
        live = Live(
            running=settings,
            handler=handler,
            pool=pool,
            inventory=inventory,
            metrics=metrics,
            sources=parts.sources,
            client=client,
            log_level=log_level,
        )
        live.take(settings)
        server = _server(settings, parts, handler)
        async with server.running(), _followed(file, live):
            await workers.start()
            await _until_told_to_stop()
    _log.info("stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What the server is put together from."""

    inventory: Inventory
    pool: EstimatePool
    metrics: Metrics
    workers: Workers
    sources: Fetcher
    keeper: Keeper | None
    """Of built-in certificates; None where they are somebody else's files."""

    def not_ready(self) -> str | None:
        """Return why reviews cannot be answered well yet, or None."""
        if not self.inventory.is_listed:
            return "the nodes are not listed yet"
        return self.keeper.not_ready() if self.keeper else None


@contextlib.asynccontextmanager
async def _followed(file: Path | None, live: Live) -> AsyncIterator[None]:
    """Take the settings of *file* whenever it changes."""
    if file is None:
        yield
        return
    followed = SettingsFile(
        file, running=live.running, take=live.take, tell=live.metrics.settings_reloaded
    )
    task = asyncio.create_task(followed.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _handler(settings: Settings, parts: _Parts) -> Handler:
    return Handler(
        policy=settings.policy,
        steering=settings.steering,
        cluster=parts.inventory,
        pool=parts.pool,
        metrics=parts.metrics,
        sources=parts.sources,
        reader=ReviewReader(kinds=with_custom(KINDS, settings.workloads.kinds)),
    )


def _server(settings: Settings, parts: _Parts, handler: Handler) -> WebhookServer:
    return WebhookServer(
        settings.server,
        reviewer=handler,
        probes=Probes(
            not_ready=parts.not_ready,
            metrics=lambda: _exposition(parts),
            certificate_loaded=parts.metrics.certificate_expires,
            report=handler.report,
        ),
        certificate=parts.keeper.certificate if parts.keeper else None,
    )


def _exposition(parts: _Parts) -> bytes:
    states = dict(parts.workers.states())
    states["waiting"] += parts.pool.num_waiting
    parts.metrics.workers(states)
    return parts.metrics.text()


def _client(settings: Settings, kubeconfig: Path | None) -> cluster.Client | None:
    """Return a client of the cluster, or None if a nodes file is all there is."""
    if settings.nodes.file is not None and kubeconfig is None and not cluster.is_in_cluster():
        return None
    return cluster.connect(kubeconfig)


async def _keeper(
    settings: Settings,
    client: cluster.Client | None,
    metrics: Metrics,
    stack: contextlib.AsyncExitStack,
) -> Keeper | None:
    """Return who looks after built-in certificates until *stack* ends; None with files.

    Raises:
        SettingsError: if there is no cluster to keep them in.
    """
    if settings.certificate_mode is CertificateMode.FILES:
        return None
    if client is None:
        raise SettingsError(
            [Problem(path="certificates.mode", message="builtin needs a cluster")],
            hint="give `--kubeconfig`, or `server.certFile` and `server.keyFile`",
        )
    kept = kept_certificates(client, settings.certificates, tell=metrics.certificate_problems)
    return await stack.enter_async_context(kept)


@contextlib.asynccontextmanager
async def _inventory(
    settings: Settings, client: cluster.Client | None, metrics: Metrics
) -> AsyncIterator[Inventory]:
    """Keep an inventory up to date from the nodes file, the API server, or both.

    With a nodes file alone there is no cluster to ask: no namespace says a mode of its own.
    """
    file = settings.nodes.file
    inventory = Inventory(
        keep_seconds=settings.nodes.keep_days * SECONDS_PER_DAY,
        namespaces_expected=client is not None,
        settings=settings.nodes,
        changed=metrics.classes,
    )
    if file is not None:
        inventory.set_nodes(await asyncio.to_thread(read_nodes, file))
        await inventory.refresh()
    watches = []
    if client is not None:
        if file is None:
            nodes = _on_loop(inventory.set_nodes)
            watches.append(cluster.Watch(client, cluster.NODES, nodes))
        namespaces = _on_loop(inventory.set_namespaces)
        watches.append(cluster.Watch(client, cluster.NAMESPACES, namespaces))
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


async def _until_told_to_stop() -> None:
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    try:
        await told.wait()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
