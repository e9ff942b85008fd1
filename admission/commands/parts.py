"""What commands ask, imported and started once there is a question: workers, sources of documents.

Job -> Workers -> Estimates; references -> Sources -> Documents
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from admission.values import Documents
from estimator.deferred import Deferred
from estimator.device import Device
from estimator.workers.api import Job

if TYPE_CHECKING:
    from admission import source_settings
    from admission.cluster import Client
    from admission.source_settings import SourceSettings
    from admission.sources import setup
    from admission.sources.fetching import Fetcher
    from estimator.report.drawing import JobDrawing
    from estimator.result import Estimate, Fit
    from estimator.spec import JobSpec
    from estimator.workers import pool
else:
    pool = Deferred("estimator.workers.pool")
    setup = Deferred("admission.sources.setup")
    source_settings = Deferred("admission.source_settings")


class LazyWorkers:
    """Worker processes, imported and started once there is something to estimate."""

    def __init__(self) -> None:
        self._pool: pool.Workers | None = None

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device, in order (see `Estimator`)."""
        return await self._started().estimate(job, devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return what would fit each device, in order (see `Estimator`)."""
        return await self._started().fit(spec, devices)

    async def draw(self, job: Job, devices: Sequence[Device]) -> JobDrawing:
        """Return the estimates of *job* on *devices*, and its run on one of them."""
        return await self._started().draw(job, devices)

    async def close(self) -> None:
        """End what was started."""
        if self._pool is not None:
            await self._pool.close()

    def _started(self) -> pool.Workers:
        if self._pool is None:
            self._pool = pool.Workers()
        return self._pool


class LazySources:
    """The sources of the settings, or the usual; imported once a document is wanted of them."""

    def __init__(
        self,
        settings: SourceSettings | None,
        *,
        client: Client | None = None,
        offline: bool = False,
    ) -> None:
        """Ask the cluster of *client* too; *offline* nobody else."""
        self._settings = settings
        self._client = client
        self._offline = offline
        self._fetcher: Fetcher | None = None

    async def fetch(
        self, wanted: Sequence[str], *, namespace: str, seconds: float | None = None
    ) -> Documents:
        """Return a document for each of *wanted* (see `Fetching`)."""
        if not wanted:
            return {}
        if self._fetcher is None:
            self._fetcher = setup.fetcher_of(self._asked(), client=self._client)
        return await self._fetcher.fetch(wanted, namespace=namespace, seconds=seconds)

    def _asked(self) -> SourceSettings:
        settings = self._settings or source_settings.SourceSettings()
        if not self._offline:
            return settings
        hub = source_settings.HubSettings(enabled=False)
        return settings.model_copy(update={"hub": hub, "allowed_hosts": ()})
