"""`vramgate serve`: the admission webhook.

    settings, kubeconfig -> inventory, workers, handler, server, until SIGTERM

Puts the parts together and holds no logic of its own. Imports no framework.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import click
import structlog

from admission.certificates.keeper import Keeper
from admission.commands.following import (
    Following,
    client_of,
    followed_inventory,
    keeper_of,
    own_namespace,
)
from admission.commands.learned import followed_learnt
from admission.commands.live import Live, pool_of, workers_of
from admission.commands.options import FILE, Word
from admission.commands.signals import told_to_stop
from admission.config import LogLevel, Settings, load_settings
from admission.detect import load_parts
from admission.errors import AdmissionError
from admission.estimates import EstimatePool
from admission.handler import Handler
from admission.inventory import Inventory
from admission.learning.floors import Learnt
from admission.logs import configure_logs
from admission.metrics import Metrics
from admission.outages import Outages
from admission.reader import ReviewReader
from admission.server import Probes, WebhookServer
from admission.settings_file import SettingsFile
from admission.sources.fetching import Fetcher
from admission.sources.setup import fetcher_of
from admission.version import package_version
from admission.workloads import KINDS
from admission.workloads.custom import with_custom
from estimator.processes.jail import hide_memory
from estimator.workers.pool import Workers

SWITCH_SECONDS = 0.001
"""How long the event loop waits for a thread that reads a review (the interpreter's default: 5 ms).
A review takes the lock some five times."""

_log = structlog.get_logger()


@click.command()
@click.option("--config", type=FILE, help="Settings file (YAML). Without it every default holds.")
@click.option("--kubeconfig", type=FILE, help="How to reach the API server, outside a cluster.")
@click.option("--log-level", type=Word(LogLevel), help="Instead of the level in the settings.")
def command(config: Path | None, kubeconfig: Path | None, log_level: LogLevel | None) -> None:
    """Answer admission reviews over HTTPS until SIGTERM."""
    hide_memory()  # before the key of the certificate is read: workers run as the same user
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
    workers = workers_of(settings)
    pool = pool_of(settings, workers, metrics)
    async with contextlib.AsyncExitStack() as stack:
        told = stack.enter_context(told_to_stop())
        client = await asyncio.to_thread(client_of, settings, kubeconfig)
        following = Following(
            settings=settings,
            client=client,
            metrics=metrics,
            outages=Outages(metrics.watches_interrupted),
        )
        inventory = await stack.enter_async_context(
            followed_inventory(settings, client, changed=metrics.classes, outages=following.outages)
        )
        learnt = stack.enter_context(
            followed_learnt(client, namespace=own_namespace(), outages=following.outages)
        )
        keeper = await keeper_of(following, stack)
        stack.push_async_callback(workers.close)
        stack.push_async_callback(pool.close)
        parts = _Parts(
            inventory=inventory,
            pool=pool,
            metrics=metrics,
            workers=workers,
            sources=fetcher_of(settings.sources, client=client),
            keeper=keeper,
            learnt=learnt,
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
            settle()
            await told.wait()
    _log.info("stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What the server is put together from."""

    inventory: Inventory
    pool: EstimatePool
    metrics: Metrics
    workers: Workers
    sources: Fetcher
    learnt: Learnt
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
        learnt=parts.learnt,
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
            certificate_problems=parts.metrics.certificate_problems,
            report=handler.report,
        ),
        certificate=parts.keeper.certificate if parts.keeper else None,
    )


def settle() -> None:
    """Take what is there by now out of the collector's rounds: it stays until the end.

    A full round walks every object of the process while nobody is answered, 0.1 s once all is
    imported. From here on it walks what came later.
    """
    gc.collect()
    gc.freeze()


def _exposition(parts: _Parts) -> bytes:
    states = dict(parts.workers.states())
    states["waiting"] += parts.pool.num_waiting
    parts.metrics.workers(states)
    parts.metrics.isolation(parts.workers.isolation())
    return parts.metrics.text()
