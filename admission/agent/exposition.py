"""What Prometheus sees of an agent.

View, endings, problems -> series; those of a card or a pod go when it goes

Cards and pods are read as they are asked for, so nothing of what is gone is left over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from admission.agent.marks import Ending
from admission.agent.problems import AgentProblem
from admission.agent.sampling import View
from admission.agent.writing import Written
from admission.version import package_version

RATIOS = (0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 4.0)
"""Buckets of measured ÷ estimated: finest where an estimate should be."""
ENDED = ("succeeded", "failed")
WATCHED = "pods"


class Exposition:
    """Every series of the agent, in a registry of its own."""

    def __init__(self, view: Callable[[], View]) -> None:
        registry = CollectorRegistry()
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry
        registry.register(_Seen(view))
        self._ratio = Histogram(
            "vramgate_estimate_error_ratio",
            "Peak of a pod on a card ÷ its estimate, once as it ends.",
            ("ended",),
            buckets=RATIOS,
            registry=registry,
        )
        self._looks = Counter(
            "vramgate_agent_samples_total", "Looks at the cards.", registry=registry
        )
        self._seconds = Counter(
            "vramgate_agent_sample_seconds_total", "Time that looks took.", registry=registry
        )
        self._problems = Gauge(
            "vramgate_agent_problems",
            "What keeps the agent from measuring or writing: 1 while it lasts.",
            ("problem",),
            registry=registry,
        )
        self._annotations = Counter(
            "vramgate_agent_annotations_total",
            "Writes of peaks on pods, by what became of them.",
            ("outcome",),
            registry=registry,
        )
        self._interrupted = Gauge(
            "vramgate_watch_interrupted",
            "1 while the API server does not let us follow these objects; what is known is kept.",
            ("resource",),
            registry=registry,
        )
        build = Info("vramgate_build", "The running version.", registry=registry)
        build.info({"version": package_version()})
        self.problems(())
        self.watches_interrupted(())
        for outcome in Written:
            self._annotations.labels(outcome.value)
        for ended in ENDED:
            self._ratio.labels(ended)

    def looked(self, seconds: float) -> None:
        """Count one look."""
        self._looks.inc()
        self._seconds.inc(seconds)

    def ended(self, ending: Ending) -> None:
        """Count one pod that has ended and had an estimate."""
        self._ratio.labels(ending.ended).observe(ending.ratio)

    def wrote(self, outcome: Written) -> None:
        """Count one write."""
        self._annotations.labels(outcome.value).inc()

    def problems(self, problems: Collection[AgentProblem]) -> None:
        """Show which problems there are now."""
        for problem in AgentProblem:
            self._problems.labels(problem.value).set(problem in problems)

    def watches_interrupted(self, resources: Collection[str]) -> None:
        """Show whether the pods can be followed."""
        self._interrupted.labels(WATCHED).set(WATCHED in resources)

    def text(self) -> bytes:
        """Return the exposition that `/metrics` answers with."""
        return generate_latest(self._registry)


class _Seen(Collector):
    """Cards and marks, as they are when somebody asks."""

    def __init__(self, view: Callable[[], View]) -> None:
        self._view = view

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield every family; without cards or pods it has no series."""
        view = self._view()
        labels = ("gpu", "index", "instance", "product")
        total, used, reserved = (
            GaugeMetricFamily(f"vramgate_gpu_memory_{name}_bytes", text, labels=labels)
            for name, text in (
                ("total", "Memory of a card or a MIG instance."),
                ("used", "What of it is in use, by everybody."),
                ("reserved", "The driver's own part of it, where the driver tells."),
            )
        )
        for card in view.cards:
            values = (card.gpu, card.index, card.instance, card.product)
            total.add_metric(values, card.total)
            used.add_metric(values, card.used)
            if card.reserved is not None:
                reserved.add_metric(values, card.reserved)
        yield from (total, used, reserved)
        peaks = GaugeMetricFamily(
            "vramgate_pod_gpu_memory_peak_bytes",
            "The most that a container ever held of a card, over restarts of it and of the agent.",
            labels=("namespace", "pod", "container", "gpu"),
        )
        for pod, marks in view.marks:
            for (container, gpu), nbytes in marks.items():
                peaks.add_metric((pod.namespace, pod.name, container, gpu), nbytes)
        yield peaks
        unattributed = GaugeMetricFamily(
            "vramgate_gpu_memory_unattributed_bytes",
            "What processes hold of which no container of this node's pods is known.",
        )
        unattributed.add_metric((), view.unattributed)
        yield unattributed
