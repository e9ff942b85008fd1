"""Put the agent together and look, again and again, until it is told to stop.

settings, client -> watch, sampler, writer, routes

Holds no logic of its own beyond the order of things and the time between looks.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from admission.agent.exposition import Exposition
from admission.agent.marks import Marks
from admission.agent.pods import Pods, pods_of, resource_of
from admission.agent.problems import AgentProblem, Problems
from admission.agent.reading import Backend
from admission.agent.sampling import Sampler
from admission.agent.writing import Writer
from admission.agent_settings import AgentSettings
from admission.cluster import Client
from admission.errors import SettingsError
from admission.objects import ClusterObjects
from admission.outages import Outages
from admission.probes import Probes, answering
from admission.version import package_version
from admission.watch import Snapshot, Watch
from estimator.errors import Problem

NODE_NAME = "NODE_NAME"
"""The variable that the chart fills from the pod's `spec.nodeName`."""
STUCK_SECONDS = 120.0
"""A look that takes longer does not come back: the driver hangs."""
STOP_SECONDS = 8.0
"""For the last writes, out of the 30 that a pod has."""

_log = structlog.get_logger()


@dataclass(slots=True)
class _State:
    """What the threads of watch, loop and routes share; each field is replaced whole."""

    pods: Pods | None = None
    looked: float | None = None
    """When the last look ended."""
    is_mismatched: bool = False

    def has(self, uid: str) -> bool:
        """Return whether there is such a pod, as far as is known."""
        return self.pods is None or uid in self.pods.by_uid

    def take(self, snapshot: Snapshot) -> None:
        """Take what the watch publishes."""
        self.pods = pods_of(snapshot)


class Agent:
    """One node's agent."""

    def __init__(
        self, settings: AgentSettings, client: Client, backends: Sequence[Backend]
    ) -> None:
        self._settings = settings
        self._node = node_of(settings)
        self._state = _State()
        self._started = time.monotonic()
        marks = Marks(growth=settings.annotation_growth, seconds=settings.annotation_seconds)
        self._marks = marks
        self._sampler = Sampler(
            backends, marks, pods=lambda: self._state.pods, proc=settings.proc_path
        )
        self._exposition = Exposition(lambda: self._sampler.view)
        self._problems = Problems()
        self._writer = Writer(
            ClusterObjects(client), tell=self._exposition.wrote, is_there=self._state.has
        )
        self._watch = Watch(
            client,
            resource_of(self._node),
            self._state.take,
            outages=Outages(self._exposition.watches_interrupted),
        )

    def run(self, stopping: threading.Event) -> None:
        """Look at the cards until *stopping* is set, then write what was not written.

        Raises:
            SettingsError: if the port is taken.
        """
        probes = Probes(
            unhealthy=self._unhealthy, not_ready=self._not_ready, metrics=self._exposition.text
        )
        with answering(self._settings.host, self._settings.port, probes) as port:
            _log.info("listening", version=package_version(), node=self._node, port=port)
            self._watch.start()
            self._writer.start()
            try:
                self._look_on(stopping)
            except Exception:
                _log.exception("agent failed")
                raise
            finally:
                self._watch.stop()
                self._sampler.close()
            if self._settings.annotate:
                self._writer.give(self._marks.unwritten(time.monotonic()))
            self._writer.stop(STOP_SECONDS)
        _log.info("stopped")

    def _look_on(self, stopping: threading.Event) -> None:
        """Look at fixed times, so that a slow look delays the next and not all after it."""
        due = time.monotonic()
        while not stopping.is_set():
            self._look()
            due = max(due + self._settings.interval_seconds, time.monotonic())
            stopping.wait(due - time.monotonic())

    def _look(self) -> None:
        now = time.monotonic()
        look = self._sampler.look(now)
        for note in self._writer.done():
            self._marks.note_written(note)
        if self._settings.annotate:
            self._writer.give(self._marks.due(now))
        problems = {**look.problems, **self._writer.problems()}
        self._problems.settle(problems)
        self._exposition.problems(problems)
        for ending in look.endings:
            self._exposition.ended(ending)
        ended = time.monotonic()
        self._exposition.looked(ended - now)
        self._state.is_mismatched = AgentProblem.NVML_MISMATCH in problems
        self._state.looked = ended

    def _unhealthy(self) -> str | None:
        """Return what a new start of the container would mend, and nothing else does."""
        if self._state.is_mismatched:
            return "the driver was replaced: its library is loaded at the start"
        last = self._state.looked or self._started
        if time.monotonic() > last + STUCK_SECONDS + self._settings.interval_seconds:
            return "the driver does not answer"
        return None

    def _not_ready(self) -> str | None:
        if self._state.looked is None:
            return "the cards were not looked at yet"
        return "the pods of this node are not listed yet" if self._state.pods is None else None


def node_of(settings: AgentSettings) -> str:
    """Return the name of the node that the agent is on.

    Raises:
        SettingsError: if nobody says it.
    """
    name = settings.node_name or os.environ.get(NODE_NAME)
    if not name:
        problem = Problem(path="agent.nodeName", message="is not told")
        raise SettingsError([problem], hint=f"set it, or the variable {NODE_NAME}")
    return name
