"""Put settings to work while the server runs.

    Settings -> handler, cache, inventory, logs

All or nothing: what may fail is made before anything is changed. On the event loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from admission.cache import Retention
from admission.cluster import Client
from admission.config import LogLevel, Settings, WorkerIsolation
from admission.estimates import EstimatePool, Watcher
from admission.handler import Handler
from admission.inventory import Inventory
from admission.logs import configure_logs
from admission.metrics import Metrics
from admission.sources.fetching import Fetcher
from admission.sources.setup import fetcher_of
from admission.workloads import KINDS
from admission.workloads.custom import with_custom
from estimator.workers.limits import Limits
from estimator.workers.pool import Workers


@dataclass(slots=True, kw_only=True)
class Live:
    """What answers reviews, and the settings that it answers by."""

    running: Settings
    handler: Handler
    pool: EstimatePool
    inventory: Inventory
    metrics: Metrics
    sources: Fetcher
    client: Client | None = None
    log_level: LogLevel | None = None
    """Of the command line: it counts before that of the settings."""

    def take(self, settings: Settings) -> None:
        """Answer by *settings* from the next review on; reviews on their way keep the old ones.

        Raises:
            SettingsError: if they cannot be put to work; then nothing has changed.
        """
        before = self.running
        kinds = with_custom(KINDS, settings.workloads.kinds)
        if settings.logs != before.logs:
            configure_logs(self.log_level or settings.logs.level, form=settings.logs.format)
        sources = self.sources
        if settings.sources != before.sources:
            sources = fetcher_of(settings.sources, client=self.client)
        self.handler.use(
            policy=settings.policy, steering=settings.steering, kinds=kinds, sources=sources
        )
        self.metrics.policy_enabled(settings.policy.enabled)
        self.metrics.show_workloads(settings.metrics.workloads)
        if settings.cache != before.cache:
            self.pool.retain(retention_of(settings))
        if settings.nodes != before.nodes:
            self.inventory.configure(settings.nodes)
        self.sources, self.running = sources, settings


def retention_of(settings: Settings) -> Retention:
    """Return how long answers are remembered."""
    return Retention(
        entries=settings.cache.entries,
        failure_seconds=settings.cache.failure_seconds,
        timeout_failure_seconds=settings.cache.timeout_failure_seconds,
    )


def workers_of(settings: Settings) -> Workers:
    """Return the worker processes that estimate."""
    return Workers(
        Limits(
            wall_seconds=settings.workers.timeout_seconds,
            memory_bytes=settings.workers.memory_bytes,
            isolation_required=settings.workers.isolation is WorkerIsolation.REQUIRED,
        ),
        max_concurrent=settings.workers.max_concurrent,
        preload=settings.workers.preload,
    )


def pool_of(settings: Settings, workers: Workers, watcher: Watcher) -> EstimatePool:
    """Return what asks *workers* once for each estimate, and remembers."""
    return EstimatePool(
        workers,
        max_concurrent=workers.max_concurrent,
        retention=retention_of(settings),
        watcher=watcher,
    )
