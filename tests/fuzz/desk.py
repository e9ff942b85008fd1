"""A handler with everything around it, and a way to see what it made of a fault of ours.

body -> Answer; an exception that the handler caught is raised again
"""

from __future__ import annotations

import asyncio
import atexit
import io
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry

from admission.capacity.classes import classes_of
from admission.codes import Action, Mode, Steer
from admission.config import LogFormat, LogLevel
from admission.detect.reading import load_parts
from admission.estimates import EstimatePool
from admission.handler import Handler
from admission.learning.floors import Learnt
from admission.logs import configure_logs
from admission.metric_labels import FAULT
from admission.metrics import Metrics
from admission.policy_settings import PolicySettings
from admission.response import Answer
from admission.review import Route
from admission.values import Document, Documents, NodeClass
from estimator.device import Device
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.units import GIB
from estimator.workers.api import Job, spec_of
from tests.builders import estimate, fit, gpu_labels, node

JSON = "application/json"


class Workers:
    """Say that every job needs 1 GiB for each 10 of its batch."""

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device."""
        spec = spec_of(job)
        need = min(spec.input.batch_size * GIB // 10, 1 << 48)
        return tuple(estimate(least=need, card=card, spec=spec) for card in devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return a batch of half the size for each device."""
        return tuple(fit(largest_batch=max(1, spec.input.batch_size // 2)) for _ in devices)


class Cluster:
    """A T4, an A100 that is cut, and whatever a target puts there."""

    def __init__(self) -> None:
        big = gpu_labels(product="NVIDIA-A100-SXM4-80GB", memory="81920", count=4, compute=(8, 0))
        self.plain = classes_of([node("t4-0"), node("a100-0", labels=big)])
        self.classes: tuple[NodeClass, ...] = self.plain
        self.mode = Mode.ENFORCE

    def mode_of(self, namespace: str) -> Mode | None:
        """Return the mode of every namespace."""
        del namespace
        return self.mode

    def steer_of(self, namespace: str) -> Steer | None:
        """Return how hard pods are steered."""
        del namespace
        return Steer.REQUIRED


class Library:
    """Has what a target gives it, under whatever name it is asked for."""

    seconds = 2.0

    def __init__(self) -> None:
        self.given: Documents = {}

    async def fetch(
        self, wanted: Sequence[str], *, namespace: str, seconds: float | None = None
    ) -> Documents:
        """Return a document for each."""
        del namespace, seconds
        missing = Document(problem="is not there")
        any_of = self.given.get("*", missing)
        return {name: self.given.get(name, any_of) for name in wanted}


class _Watching(Metrics):
    """Keeps the exception that the handler is about to hide."""

    fault: BaseException | None = None

    def unknown(self, code: str) -> None:
        super().unknown(code)
        if code == FAULT:
            self.fault = sys.exception()

    def patch_dropped(self, kind: str) -> None:
        super().patch_dropped(kind)
        self.fault = sys.exception()


class Desk:
    """One handler, for all inputs of a target."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.sources = Library()
        self.log = io.StringIO()
        configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=self.log)
        self._loop = asyncio.new_event_loop()
        atexit.register(self._loop.close)
        self.metrics = _Watching(CollectorRegistry())
        policy = PolicySettings(
            mode=Mode.ENFORCE, on_unknown=Action.WARN, workloads_may_loosen=True
        )
        self._handler = Handler(
            policy=policy,
            cluster=self.cluster,
            pool=EstimatePool(Workers(), watcher=self.metrics),
            metrics=self.metrics,
            sources=self.sources,
            learnt=Learnt(),
        )

    def answer(self, body: bytes, *, route: Route, content_type: str = JSON) -> Answer:
        """Return the answer.

        Raises: whatever the handler caught as a fault of ours.
        """
        self.log.seek(0)
        self.log.truncate()
        self.metrics.fault = None
        answer = self._loop.run_until_complete(
            self._handler.answer(body, content_type=content_type, timeout_text="30s", route=route)
        )
        if self.metrics.fault is not None:
            raise self.metrics.fault
        return answer

    def run(self, awaitable: Any) -> Any:
        """Return what *awaitable* comes to."""
        return self._loop.run_until_complete(awaitable)


@cache
def desk() -> Desk:
    """Return the handler of this process."""
    load_parts()
    return Desk()
