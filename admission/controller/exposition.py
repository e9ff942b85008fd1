"""What Prometheus sees of a controller.

acts, deaths, estimates -> series with closed labels; pods and nodes, read as they are asked for
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

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

from admission.cache import CacheResult
from admission.controller.acting import Outcome
from admission.controller.acts import Cause, Died, Misplaced
from admission.controller.predicted import NodeGpus, Predicted
from admission.metric_labels import METHODS, NONE, OUTCOMES
from admission.metric_series import BUCKETS
from admission.version import package_version
from estimator.errors import EstimatorError
from estimator.result import Estimate
from estimator.spec import Framework, JobSpec

PREDICTED = ("true", "false", "unknown")
"""Whether the estimate said that the card would not do; unknown: there was no estimate."""
PLACED = ("pending", "running")


class Exposition:
    """Every series of the controller, in a registry of its own."""

    def __init__(self, *, duties: Iterable[str], queued: Callable[[], int]) -> None:
        registry = CollectorRegistry()
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry
        self._moved = Counter(
            "vramgate_rescheduled_total",
            "Pods and workloads that were moved to a card that holds them.",
            ("reason",),
            registry=registry,
        )
        self._deaths = Counter(
            "vramgate_oom_total",
            "Deaths by lack of GPU memory.",
            ("framework", "predicted"),
            registry=registry,
        )
        self._misplaced = Counter(
            "vramgate_wrong_card_total",
            "Workloads found on, or waiting for, a card that cannot hold them.",
            ("state",),
            registry=registry,
        )
        self._acts = Counter(
            "vramgate_controller_acts_total",
            "What duties wanted done, by what became of it.",
            ("duty", "outcome"),
            registry=registry,
        )
        self._queued = Gauge(
            "vramgate_controller_queue", "Keys that wait to be looked at.", registry=registry
        )
        self._leads = Gauge(
            "vramgate_controller_leads", "1 while this controller is the one.", registry=registry
        )
        self._estimate_seconds = Histogram(
            "vramgate_estimate_seconds",
            "Time of one question to a worker, waiting for a free one included.",
            ("framework", "method"),
            buckets=BUCKETS,
            registry=registry,
        )
        self._estimates = Counter(
            "vramgate_estimates_total",
            "Questions to workers, by how they ended.",
            ("framework", "method", "outcome"),
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
        self._queued.set_function(queued)
        self._leads.set(0)
        for cause in Cause:
            self._moved.labels(cause.value)
        for known in (*(framework.value for framework in Framework), NONE):
            for predicted in PREDICTED:
                self._deaths.labels(known, predicted)
        for framework in Framework:
            for method in METHODS[framework]:
                for ending in OUTCOMES:
                    if (method == NONE) is (ending != "ok"):
                        self._estimates.labels(framework.value, method, ending)
        for state in PLACED:
            self._misplaced.labels(state)
        for duty in duties:
            for outcome in Outcome:
                self._acts.labels(duty, outcome.value)

    def moved(self, cause: Cause) -> None:
        """Count one workload or pod that was moved."""
        self._moved.labels(cause.value).inc()

    def died(self, framework: str, *, predicted: bool | None) -> None:
        """Count one death by lack of GPU memory; *predicted* is None without an estimate."""
        known = framework if framework in {each.value for each in Framework} else NONE
        said = "unknown" if predicted is None else str(predicted).lower()
        self._deaths.labels(known, said).inc()

    def told(self, counted: Died | Misplaced) -> None:
        """Count what was told for the first time."""
        match counted:
            case Died():
                self.died(counted.framework, predicted=counted.predicted)
            case Misplaced():
                self._misplaced.labels(counted.state).inc()

    def acted(self, duty: str, outcome: Outcome) -> None:
        """Count one act."""
        self._acts.labels(duty, outcome.value).inc()

    def leads(self, leads: bool) -> None:
        """Show whether this controller is at work."""
        self._leads.set(leads)

    def watches_interrupted(self, kinds: Collection[str]) -> None:
        """Show what cannot be followed now."""
        self._interrupted.clear()
        for kind in kinds:
            self._interrupted.labels(kind).set(1)

    def cache_asked(self, result: CacheResult) -> None:
        """Count nothing: the controller asks rarely."""

    def estimated(
        self, spec: JobSpec, outcome: Sequence[Estimate] | EstimatorError, *, seconds: float
    ) -> None:
        """Count one question to a worker."""
        framework, method, ending = spec.framework.value, NONE, "ok"
        if isinstance(outcome, EstimatorError):
            ending = outcome.kind
        elif outcome:
            method = outcome[0].method.value
        self._estimate_seconds.labels(framework, method).observe(seconds)
        self._estimates.labels(framework, method, ending).inc()

    def show(
        self,
        predicted: Callable[[], Predicted],
        nodes: Callable[[], Iterable[NodeGpus]] | None = None,
    ) -> None:
        """Show what pods are predicted to hold, and *nodes* by name, as they are when asked."""
        self._registry.register(_Seen(predicted, nodes))

    def text(self) -> bytes:
        """Return every series, as Prometheus reads it."""
        return generate_latest(self._registry)


class _Seen(Collector):
    """What there is, with nothing left over of what is gone."""

    def __init__(
        self, predicted: Callable[[], Predicted], nodes: Callable[[], Iterable[NodeGpus]] | None
    ) -> None:
        self._predicted = predicted
        self._nodes = nodes

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the series."""
        held = GaugeMetricFamily(
            "vramgate_class_predicted_bytes",
            "Predicted for the pods that wait and run now, over all their GPUs.",
            labels=("product", "state"),
        )
        for labels, nbytes in self._predicted().items():
            held.add_metric(labels, nbytes)
        yield held
        if self._nodes is not None:
            yield from _by_node(self._nodes())

    def describe(self) -> tuple[GaugeMetricFamily, ...]:
        """Return nothing: registering asks for nothing that is not there yet."""
        return ()


def _by_node(nodes: Iterable[NodeGpus]) -> Iterator[GaugeMetricFamily]:
    labels = ("node", "product")
    memory = GaugeMetricFamily(
        "vramgate_node_gpu_memory_bytes", "Memory of one GPU of a node.", labels=labels
    )
    gpus = GaugeMetricFamily("vramgate_node_gpus", "GPUs of a node.", labels=labels)
    for each in nodes:
        gpus.add_metric((each.node, each.product), each.gpus)
        if each.total_bytes is not None:
            memory.add_metric((each.node, each.product), each.total_bytes)
    yield memory
    yield gpus
