"""What the handler answers in this process, before the server is asked at all.

    Case, state of the cluster -> bytes of each legitimate answer -> which one it is

The same handler, settings and workers as `serve` has; no server, no TLS, no event from outside.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import orjson
import structlog
from prometheus_client import CollectorRegistry

from admission.cache import Retention
from admission.capacity.classes import classes_of
from admission.codes import Mode, Steer
from admission.config import LogFormat, LogLevel, Settings
from admission.detect import load_parts
from admission.estimates import EstimatePool
from admission.handler import Handler
from admission.inventory import mode_label, steer_label
from admission.logs import configure_logs
from admission.metrics import Metrics
from admission.reader import ReviewReader
from admission.sources.fetching import Fetcher
from admission.sources.references import CLUSTER, Origin, Reference
from admission.values import Document, NodeClass
from admission.workloads import KINDS
from admission.workloads.custom import with_custom
from estimator.device import Device
from estimator.errors import EstimateTimeoutError
from estimator.result import Estimate, Fit
from estimator.spec import Framework, JobSpec
from estimator.workers.api import Estimator, Job
from estimator.workers.limits import Limits
from estimator.workers.pool import Workers
from tests.load.bodies import UID, Body
from tests.load.specs import NAMESPACES, config_map
from tests.load.states import STATES

JSON = "application/json"
LONG = "30s"
"""The longest that may be asked for: the answers here are the whole ones."""
IN_TIME_SECONDS = 25.0
"""What is answered sooner has met no time limit on its way: nothing was left out."""
LIMITS = Limits(wall_seconds=600.0, plans_seconds=60.0)
"""However slow the machine, an estimate here is not given up."""
WHOLE, NO_HINTS = "as expected", "as expected, hints late"

Answers = Mapping[bytes, str]
"""Body of an answer, its uid replaced -> which of the legitimate ones it is."""


class Standing:
    """A cluster that stays as it is."""

    def __init__(self, classes: tuple[NodeClass, ...]) -> None:
        self.classes = classes

    def mode_of(self, namespace: str) -> Mode | None:
        """Return what the label of *namespace* says."""
        return mode_label({"labels": NAMESPACES.get(namespace, {})})

    def steer_of(self, namespace: str) -> Steer | None:
        """Return what the label of *namespace* says."""
        return steer_label({"labels": NAMESPACES.get(namespace, {})})


class Store:
    """The ConfigMaps of the cluster in memory, and its Hub, which has no model."""

    def fetch(self, reference: Reference, *, namespace: str) -> Document:  # noqa: ARG002 (any)
        """Return the document."""
        text = config_map(reference.name) if reference.origin is Origin.CONFIG_MAP else None
        if text is not None:
            return Document(files={"spec.json": text})
        return Document(problem="is not there")


class Hasty:
    """Workers that answer the first question of a review, and are late with what is asked next."""

    def __init__(self, pool: Estimator, *, fits: bool, elsewhere: bool) -> None:
        self._pool, self._fits, self._elsewhere = pool, fits, elsewhere
        self.asked: set[str] = set()
        """Digests that this review has asked about."""

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return the estimates at the first question about *job*."""
        found = await self._pool.estimate(job, devices)
        digest = found[0].spec_digest
        if digest in self.asked and not self._elsewhere:
            raise EstimateTimeoutError("late")
        self.asked.add(digest)
        return found

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return what would fit, if there is time for that."""
        if not self._fits:
            raise EstimateTimeoutError("late")
        return await self._pool.fit(spec, devices)


class Oracle:
    """Answers reviews as `serve` should, in each state of the cluster."""

    def __init__(self, settings: Settings, workers: Workers) -> None:
        self._settings = settings
        self._pool = EstimatePool(
            workers,
            max_concurrent=workers.max_concurrent,
            retention=Retention(entries=100_000, timeout_failure_seconds=0.0),
        )
        self.clusters = {
            name: Standing(classes_of(nodes.values())) for name, nodes in STATES.items()
        }

    def shown_classes(self, state: str) -> frozenset[str]:
        """Return the series of cards that `serve` shows in *state*."""
        metrics = Metrics(CollectorRegistry())
        metrics.classes(self.clusters[state].classes)
        return class_series(metrics.text())

    async def answers(self, body: Body, state: str) -> Answers:
        """Return every answer to *body* in *state* that is whole or lacks hints alone."""
        cluster = self.clusters[state]
        whole = await _whole_answer(lambda: self._handler(cluster, self._pool), body)
        found = {whole: WHOLE}
        if b'"verdict":"oom"' in whole:
            for fits, elsewhere in ((False, False), (False, True), (True, False)):
                hasty = Hasty(self._pool, fits=fits, elsewhere=elsewhere)
                pool = EstimatePool(hasty)
                answer = await _answer(self._handler(cluster, pool), body)
                await pool.close()
                found.setdefault(answer, NO_HINTS)
        return found

    def _handler(self, cluster: Standing, pool: EstimatePool) -> Handler:
        """Return a handler that has answered nothing yet: what it remembered could hide a fault."""
        return Handler(
            policy=self._settings.policy,
            steering=self._settings.steering,
            cluster=cluster,
            pool=pool,
            metrics=Metrics(CollectorRegistry()),
            sources=Fetcher({**dict.fromkeys(CLUSTER, Store()), Origin.HUB: Store()}, seconds=30.0),
            reader=ReviewReader(kinds=with_custom(KINDS, self._settings.workloads.kinds)),
        )


@asynccontextmanager
async def oracle(settings: Settings) -> AsyncIterator[Oracle]:
    """Run workers of its own for the length of an `async with` block."""
    load_parts()
    configure_logs(LogLevel.ERROR, form=LogFormat.CONSOLE)
    workers = Workers(LIMITS, max_concurrent=2, preload=(Framework.MXNET,))
    await workers.start()
    try:
        yield Oracle(settings, workers)
    finally:
        await workers.close()
        structlog.reset_defaults()


def class_series(metrics: bytes) -> frozenset[str]:
    """Return the lines of *metrics* that say which cards there are."""
    return frozenset(
        line
        for line in metrics.decode().splitlines()
        if line.startswith("vramgate_gpu_class_count{")
    )


def stripped(answer: bytes, uid: str) -> bytes:
    """Return *answer* with the placeholder for its uid; as it is, if that is not in it once."""
    return answer.replace(uid.encode(), UID.encode()) if answer.count(uid.encode()) == 1 else answer


async def _whole_answer(handler: Callable[[], Handler], body: Body) -> bytes:
    """Return the answer of a new handler to *body*, asked until nothing in it is late."""
    while True:
        began = time.monotonic()
        found = await _answer(handler(), body)
        is_late = time.monotonic() - began > IN_TIME_SECONDS or b'"reason":"late"' in found
        if not is_late:
            return found


async def _answer(handler: Handler, body: Body) -> bytes:
    answer = await handler.answer(
        body.text(), content_type=JSON, timeout_text=LONG, route=body.route
    )
    assert answer.status == 200, answer.body
    assert orjson.loads(answer.body)["response"]["uid"] == UID
    return answer.body
